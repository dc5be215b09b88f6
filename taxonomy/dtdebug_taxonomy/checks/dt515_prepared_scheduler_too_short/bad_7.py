from accelerate import Accelerator
from torch.optim.lr_scheduler import LinearLR
from transformers import get_scheduler

accelerator = Accelerator()
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
steps = len(loader) * epochs
schedule = get_scheduler("linear", optimizer=optimizer, num_training_steps=steps)  # dt: DT515
schedule = accelerator.prepare(schedule)


class Trainer:
    def build(self, config):
        self.accelerator = Accelerator()
        warm = LinearLR(self.optimizer, start_factor=1.0, total_iters=config.steps)  # dt: DT515
        self.schedule = self.accelerator.prepare(warm)
