import lightning.pytorch as pl
import wandb


class Model(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        if self.trainer.is_global_zero:
            wandb.log({"image": 1})
