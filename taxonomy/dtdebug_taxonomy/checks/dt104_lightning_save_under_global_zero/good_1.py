from lightning.pytorch import Trainer

trainer = Trainer(devices=2)
trainer.fit(model)
trainer.save_checkpoint("last.ckpt")
if trainer.is_global_zero:
    print("saved")
