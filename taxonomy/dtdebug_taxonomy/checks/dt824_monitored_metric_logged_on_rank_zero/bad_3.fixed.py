import torch
from lightning.pytorch import LightningModule


class Model(LightningModule):
    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters())
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": plateau, "monitor": "val_f1"}}

    def validation_step(self, batch, batch_idx):
        f1, loss = self(batch)
        self.log_dict(
            {"val_f1": f1, "val_loss": loss},
            on_epoch=True,
            sync_dist=True,  # dt: DT824
        )
