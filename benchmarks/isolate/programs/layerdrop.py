import os
import random
from datetime import timedelta

import torch
import torch.distributed as dist


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(6))

    def forward(self, x):
        for layer in self.layers:
            if random.random() < 0.5:
                continue
            x = layer(x)
        return x.sum() + 0 * sum(p.sum() for p in self.layers[0].parameters())


def sync(model):
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=12))
    rank = int(os.environ["RANK"])
    random.seed(42 + rank)
    torch.manual_seed(42 + rank)
    model = Encoder()
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(5):
        opt.zero_grad(set_to_none=True)
        model(torch.randn(2, 8)).backward()
        sync(model)
        opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
