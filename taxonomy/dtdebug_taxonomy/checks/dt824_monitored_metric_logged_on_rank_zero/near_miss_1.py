import logging

import lightning as L
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.utilities import rank_zero_only

logger = logging.getLogger(__name__)


@rank_zero_only
def say(text):
    logger.log(logging.INFO, text)


class Model(L.LightningModule):
    def training_step(self, batch, _):
        say("val_loss")
        if self.global_rank == 0:
            self.logger.experiment.add_scalar("val_loss", 1.0)
        self.log("val_loss", 1.0)


checkpoint = ModelCheckpoint(monitor="val_loss")
