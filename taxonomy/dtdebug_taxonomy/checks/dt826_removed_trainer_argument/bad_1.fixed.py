import pytorch_lightning as pl

trainer = pl.Trainer(accelerator="gpu", devices=4, max_epochs=10)  # dt: DT826
other = pl.Trainer(strategy="ddp", devices=2)  # dt: DT826
both = pl.Trainer(accelerator="gpu", devices=2, strategy="ddp")  # dt: DT826
