from ray.train import ScalingConfig
from ray.train.torch import TorchTrainer as Trainer

import pytorch_lightning as pl


class MyTrainer(pl.Trainer):
    pass


trainer = Trainer(lambda: None, scaling_config=ScalingConfig(num_workers=2))
mine = MyTrainer(gpus=1)
options = {"gpus": 4}
