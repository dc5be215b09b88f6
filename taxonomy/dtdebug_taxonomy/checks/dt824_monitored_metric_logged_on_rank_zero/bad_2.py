import lightning as L
from lightning.pytorch.callbacks import EarlyStopping

METRIC = "val/acc"


class Net(L.LightningModule):
    def on_validation_epoch_end(self):
        if self.trainer.is_global_zero:
            self.log(METRIC, self.metric.compute())  # dt: DT824


stopper = EarlyStopping(METRIC, patience=3)
