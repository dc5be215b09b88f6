import lightning.pytorch as pl

trainer = pl.Trainer(accelerator="gpu", devices=-1, num_nodes=int(os.environ["SLURM_NNODES"]))
trainer.fit(Model(), Data())
