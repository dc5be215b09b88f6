import lightning.pytorch as pl

pl.Trainer(devices=1).fit(Model(), Data())
