import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Runner:
    def __init__(self, model, cfg):
        self.rank = dist.get_rank()
        self.model = DDP(model)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=cfg["lr"])
        self.cfg = cfg

    def save(self, epoch):
        if self.rank == 0:
            os.makedirs(self.cfg["dir"], exist_ok=True)
            if (epoch + 1) % self.cfg["every"] == 0:
                torch.save(self.model.state_dict(), f"{self.cfg['dir']}/{epoch}.pt")
                dist.barrier()

    def fit(self):
        for epoch in range(self.cfg["epochs"]):
            for _ in range(3):
                self.opt.zero_grad()
                self.model(torch.randn(2, 6)).sum().backward()
                self.opt.step()
            self.save(epoch)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Runner(torch.nn.Linear(6, 1), {"lr": 0.1, "epochs": 4, "every": 2, "dir": "out"}).fit()
    dist.destroy_process_group()
