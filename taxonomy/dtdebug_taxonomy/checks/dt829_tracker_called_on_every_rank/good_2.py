import lightning.pytorch as pl


class Model(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        self.log("loss", self(batch), sync_dist=True)
