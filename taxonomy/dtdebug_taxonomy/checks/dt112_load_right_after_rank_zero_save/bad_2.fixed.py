import os

import torch
import torch.distributed as dist


class Averager:
    def __init__(self, args):
        self.args = args
        self.is_main = args.rank == 0

    def best(self, epoch):
        name = os.path.join(self.args.out, f"epoch{epoch}.pt")
        if self.is_main:
            os.makedirs(self.args.out, exist_ok=True)
            torch.save({"model": self.model.state_dict()}, name)
            print("saved")
        dist.barrier()
        for _ in range(1):
            state = torch.load(name)  # dt: DT112
        return state
