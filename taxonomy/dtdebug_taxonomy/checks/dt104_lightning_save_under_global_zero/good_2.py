import pytorch_lightning as pl
import torch


class Export(pl.Callback):
    def on_train_end(self, trainer, pl_module):
        scores = pl_module.all_gather(pl_module.scores)
        if trainer.is_global_zero:
            torch.save(pl_module.state_dict(), "model.pt")
            self.save("scores.csv", scores)
