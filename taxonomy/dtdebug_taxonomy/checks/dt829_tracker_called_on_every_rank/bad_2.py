import wandb
from pytorch_lightning import LightningModule


class Net(LightningModule):
    def on_validation_epoch_end(self):
        if self.current_epoch % 5 == 0:
            wandb.log({"table": self.table})  # dt: DT829
