import pytorch_lightning as pl

trainer = pl.Trainer(accelerator="gpu", devices=4, strategy="ddp", max_epochs=10)
