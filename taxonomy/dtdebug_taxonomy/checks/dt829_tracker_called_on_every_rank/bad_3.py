import pytorch_lightning as pl
import wandb as w


class Images(pl.Callback):
    def on_train_epoch_end(self, trainer, module):
        w.log({"sample": w.Image(module.sample())})  # dt: DT829
