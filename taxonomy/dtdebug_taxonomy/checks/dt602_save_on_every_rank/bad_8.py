import os

import torch
import torch.distributed as dist


class Runner:
    def __init__(self, model, folder):
        dist.init_process_group("nccl")
        self.model, self.folder = model, folder
        self.silent = dist.get_rank() != 0

    def learn(self, steps):
        for step in range(steps):
            self.model.step()
            if step % 100 == 0:
                self.save(os.path.join(self.folder, f"model_{step}.pt"))  # dt: DT602
        if not self.silent:
            self.save(os.path.join(self.folder, "model.pt"))

    def save(self, path):
        torch.save(self.model.state_dict(), path)
