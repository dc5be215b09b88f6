import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint


class Model(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        loss = self.all_gather(self(batch).mean()).mean()
        self.log("val_loss", loss)


trainer = pl.Trainer(devices=8, strategy="ddp", callbacks=[ModelCheckpoint(monitor="val_loss")])
trainer.fit(Model())
