import pytorch_lightning as pl

trainer = pl.Trainer(gpus=-1, accelerator="ddp", precision=16)  # dt: DT826
