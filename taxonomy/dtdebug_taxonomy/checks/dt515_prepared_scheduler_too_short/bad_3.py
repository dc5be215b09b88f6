from accelerate import Accelerator
from diffusers.optimization import get_scheduler


class Trainer:
    def __init__(self, args, optimizer):
        self.accelerator = Accelerator()
        total = args.steps * args.accumulation
        self.scheduler = get_scheduler("constant", optimizer, num_training_steps=total)  # dt: DT515
        self.scheduler = self.accelerator.prepare(self.scheduler)
