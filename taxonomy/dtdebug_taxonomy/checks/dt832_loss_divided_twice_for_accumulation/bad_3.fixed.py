from accelerate import Accelerator


class Trainer:
    def __init__(self, config):
        self.accelerator = Accelerator(gradient_accumulation_steps=config.train.accumulation)

    def step(self, model, batch):
        loss = model(batch)
        self.accelerator.backward(loss)
