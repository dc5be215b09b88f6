import lightning as L
import wandb
from lightning.pytorch.callbacks import Callback


class KeepId(Callback):
    def on_fit_start(self, trainer, pl_module):
        with open("wandb_id", "w") as file:
            file.write(wandb.run.id)  # dt: DT829


trainer = L.Trainer(accelerator="gpu", devices=8, strategy="ddp", callbacks=[KeepId()])
