from accelerate import Accelerator
from mine import update_ema


class Trainer:
    def __init__(self, model, average, steps):
        self.accelerator = Accelerator(gradient_accumulation_steps=steps)
        self.model, self.average = self.accelerator.prepare(model), average

    def fit(self, loader, opt):
        for batch in loader:
            with self.accelerator.accumulate(self.model):
                self.accelerator.backward(self.model(batch))
                opt.step()
                opt.zero_grad()
            if self.accelerator.is_main_process:
                update_ema(self.average, self.model)  # dt: DT835
