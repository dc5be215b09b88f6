import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint
from torchmetrics import Accuracy


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.accuracy = Accuracy(task="multiclass", num_classes=10)

    def validation_step(self, batch, batch_idx):
        self.accuracy(self(batch["x"]), batch["y"])
        self.log("val_acc", self.accuracy)


trainer = pl.Trainer(devices=8, strategy="ddp", callbacks=[ModelCheckpoint(monitor="val_acc")])
trainer.fit(Model())
