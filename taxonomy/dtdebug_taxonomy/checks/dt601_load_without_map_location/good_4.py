from lightning.pytorch import Trainer

from mine import Data, Net

trainer = Trainer(devices=8, accelerator="gpu", strategy="ddp")
net = Net.load_from_checkpoint("last.ckpt", map_location="cpu")
other = Net.load_from_checkpoint("teacher.ckpt")
print(other.hparams)
trainer.fit(net, datamodule=Data())
