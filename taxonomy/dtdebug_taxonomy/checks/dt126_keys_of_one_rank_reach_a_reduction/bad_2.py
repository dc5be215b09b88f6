import lightning.pytorch as pl


class Model(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        x, y = batch
        loss = self.loss(self(x), y)
        self.log("val_loss", loss, sync_dist=True)
        if y[0] > 0:
            self.log("val_positive", loss, sync_dist=True)  # dt: DT126
        else:
            self.log("val_negative", loss, sync_dist=True)  # dt: DT126
