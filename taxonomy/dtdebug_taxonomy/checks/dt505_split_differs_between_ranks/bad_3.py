import pytorch_lightning as pl
from torch.utils.data import random_split as split


class Data(pl.LightningDataModule):
    def setup(self, stage=None):
        self.train, self.val = split(self.full, lengths=[0.9, 0.1])  # dt: DT505


trainer = pl.Trainer(accelerator="gpu", devices=4, strategy="ddp")
