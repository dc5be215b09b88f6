import os

import torch
from accelerate import Accelerator


class Trainer:
    def __init__(self, args, model):
        self.accelerator = Accelerator()
        self.model = self.accelerator.prepare(model)
        self.fsdp = args.fsdp

    def save(self, path):
        if self.fsdp:
            state = self.accelerator.get_state_dict(self.model)
        if self.accelerator.is_main_process:
            os.makedirs(path, exist_ok=True)
            if self.fsdp:
                torch.save(state, os.path.join(path, "model.pt"))
            else:
                self.accelerator.save_state(path)
