import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint


class Model(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        loss = self(batch).mean()
        self.log("val_loss", loss)
        return loss


checkpoint = ModelCheckpoint(monitor="val_loss", save_top_k=2)
trainer = pl.Trainer(devices=1, accelerator="gpu", callbacks=[checkpoint])
trainer.fit(Model())
