import deepspeed
import torch


class Trainer:
    def __init__(self, model):
        with deepspeed.zero.Init():
            model = model()
        self.engine, self.optimizer, *_ = deepspeed.initialize(model=model, config="ds_config.json")

    def save(self, path):
        weights = self.engine.state_dict()  # dt: DT603
        torch.save(dict(model=weights, step=self.engine.global_steps), path)
