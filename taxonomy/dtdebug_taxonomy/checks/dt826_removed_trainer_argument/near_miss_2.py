import pytorch_lightning as pl
from packaging import version

if version.parse(pl.__version__) < version.parse("1.7"):
    trainer = pl.Trainer(gpus=4, accelerator="ddp")
else:
    trainer = pl.Trainer(accelerator="gpu", devices=4, strategy="ddp")

try:
    trainer = pl.Trainer(gpus=4)
except TypeError:
    trainer = pl.Trainer(accelerator="gpu", devices=4)
