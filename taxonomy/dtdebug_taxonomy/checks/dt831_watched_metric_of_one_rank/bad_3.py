import pytorch_lightning as pl
from pytorch_lightning.callbacks import EarlyStopping


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.seen = []

    def validation_step(self, batch, batch_idx):
        self.seen.append(self(batch).mean())

    def on_validation_epoch_end(self):
        self.log_dict({"val_error": sum(self.seen) / len(self.seen)})  # dt: DT831
        self.seen.clear()


if __name__ == "__main__":
    trainer = pl.Trainer(gpus=-1, strategy="ddp", callbacks=[EarlyStopping("val_error", patience=3)])
    trainer.fit(Model())
