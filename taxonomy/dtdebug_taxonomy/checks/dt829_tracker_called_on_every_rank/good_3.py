import lightning.pytorch as pl
import wandb

wandb.init(project="x")


class Model(pl.LightningModule):
    def training_step(self, batch, batch_idx):
        wandb.log({"step": batch_idx})
