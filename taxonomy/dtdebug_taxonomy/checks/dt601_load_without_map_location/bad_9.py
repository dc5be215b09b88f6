from lightning.pytorch import Trainer

from mine import Data, Net

trainer = Trainer(devices=8, accelerator="gpu", strategy="ddp")
net = Net.load_from_checkpoint("last.ckpt", strict=False)  # dt: DT601
trainer.fit(net, datamodule=Data())
