from pytorch_lightning import Callback


class SaveAtEnd(Callback):
    def on_keyboard_interrupt(self, trainer, pl_module):
        if trainer.global_rank == 0:
            trainer.save_checkpoint("last.ckpt")
