import lightning.pytorch as pl
import wandb


class Model(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        image = draw(batch)
        wandb.log({"image": wandb.Image(image)})  # dt: DT829
