import lightning as L
from lightning.pytorch.callbacks import ModelCheckpoint


class Model(L.LightningModule):
    def on_validation_epoch_end(self):
        value = self.metric.compute()
        self.log("acc", value, rank_zero_only=False)
        if self.trainer.is_global_zero:
            print(value)


checkpoint = ModelCheckpoint(monitor="acc", mode="max")
