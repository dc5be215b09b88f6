import lightning.pytorch as pl


class Model(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        x, y = batch
        loss = self.loss(self(x), y)
        if y[0] > 0:
            self.log("val_loss", loss, sync_dist=True)
        else:
            self.log("val_loss", 2 * loss, sync_dist=True)
        if "mask" in batch:
            self.log("masked", loss, sync_dist=True)
        if self.hparams.verbose:
            self.log("verbose", loss, sync_dist=True)
        if y[0] > 1:
            self.log("own", loss)
