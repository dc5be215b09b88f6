import wandb
from accelerate import Accelerator


class Trainer:
    def __init__(self, config, use_wandb):
        self.accelerator = Accelerator()
        if use_wandb:
            wandb.init(project="mine", config=config, mode=None if self.accelerator.is_main_process else "disabled")  # dt: DT606
        if self.accelerator.is_main_process:
            print(config)
