import pytorch_lightning as pl

trainer = pl.Trainer(accelerator="gpu", devices=-1, strategy="ddp", precision=16)  # dt: DT826
