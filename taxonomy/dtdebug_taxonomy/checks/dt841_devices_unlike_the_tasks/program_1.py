import lightning as L

trainer = L.Trainer(accelerator="gpu", devices=2, num_nodes=1, strategy="ddp", max_epochs=3)
trainer.fit(Model(), Data())
