import pytorch_lightning as pl

trainer = pl.Trainer(devices=4, strategy="ddp")
trainer.fit(model, data)
if trainer.is_global_zero:
    trainer.save_checkpoint("last.ckpt")  # dt: DT104
