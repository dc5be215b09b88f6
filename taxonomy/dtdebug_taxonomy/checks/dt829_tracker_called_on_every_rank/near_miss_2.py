import lightning as L
import wandb
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.utilities import rank_zero_only


class KeepId(Callback):
    @rank_zero_only
    def on_fit_start(self, trainer, pl_module):
        self.name = wandb.run.id

    def on_fit_end(self, trainer, pl_module):
        if wandb.run is not None:
            print(wandb.run.url)
        return wandb.run.name if wandb.run else ""


trainer = L.Trainer(accelerator="gpu", devices=8, strategy="ddp", callbacks=[KeepId()])
