from accelerate import Accelerator


class Trainer:
    def __init__(self, config):
        self.accelerator = Accelerator(gradient_accumulation_steps=config.train.accumulation)

    def step(self, model, batch):
        loss = model(batch)
        loss /= self.accelerator.gradient_accumulation_steps  # dt: DT832
        self.accelerator.backward(loss)
