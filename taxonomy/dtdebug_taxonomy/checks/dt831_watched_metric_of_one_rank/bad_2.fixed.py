import lightning as L
from lightning.pytorch.callbacks import ModelCheckpoint


class Model(L.LightningModule):
    def training_step(self, batch, batch_idx):
        loss = self(batch).mean()
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        loss = self(batch).mean()
        self.log("val/loss", loss, on_epoch=True, prog_bar=True, sync_dist=True)  # dt: DT831


def main(model, data):
    best = ModelCheckpoint(filename="{epoch}-{val/loss:.3f}")
    L.Trainer(devices=4, num_nodes=2, callbacks=[best]).fit(model, data)


main(Model(), None)
