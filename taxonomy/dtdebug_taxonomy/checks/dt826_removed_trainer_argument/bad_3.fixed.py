from pytorch_lightning import Trainer


class Experiment:
    def __init__(self, cfg):
        options = dict(
            max_epochs=cfg.epochs,
            progress_bar_refresh_rate=20,  # dt: DT826
        )
        self.trainer = Trainer(**options)
        self.debug = Trainer(accelerator="cpu", devices=2, enable_checkpointing=False)  # dt: DT826
        self.old = Trainer(strategy="ddp")  # dt: DT826
