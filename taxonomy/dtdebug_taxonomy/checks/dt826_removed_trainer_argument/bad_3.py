from pytorch_lightning import Trainer


class Experiment:
    def __init__(self, cfg):
        options = dict(
            max_epochs=cfg.epochs,
            progress_bar_refresh_rate=20,  # dt: DT826
        )
        self.trainer = Trainer(**options)
        self.debug = Trainer(num_processes=2, checkpoint_callback=False)  # dt: DT826
        self.old = Trainer(distributed_backend="ddp")  # dt: DT826
