from lightning.pytorch.callbacks import Callback
from lightning.pytorch.utilities import rank_zero_only


class SaveBest(Callback):
    def on_validation_end(self, trainer, pl_module):
        if trainer.global_rank == 0 and trainer.callback_metrics["loss"] < self.best:
            self.best = trainer.callback_metrics["loss"]
            trainer.save_checkpoint(self.path)  # dt: DT104

    @rank_zero_only
    def on_train_end(self, trainer, pl_module):
        trainer.save_checkpoint("end.ckpt")  # dt: DT104
