import pytorch_lightning as pl

trainer = pl.Trainer(gpus=4, max_epochs=10)  # dt: DT826
other = pl.Trainer(accelerator="ddp", devices=2)  # dt: DT826
both = pl.Trainer(gpus=2, accelerator="ddp")  # dt: DT826
