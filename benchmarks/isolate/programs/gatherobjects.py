"""Results are gathered as objects, and one of them holds a lambda."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Meter:
    def __init__(self, name, form=lambda v: f"{v:.3f}"):
        self.name, self.form, self.values = name, form, []

    def add(self, value):
        self.values.append(float(value))


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    meter = Meter("loss")
    for step in range(4):
        loss = model(torch.randn(8, 4)).square().mean()
        loss.backward()
        meter.add(loss)
    gathered = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, meter)
    if dist.get_rank() == 0:
        print(sum(sum(m.values) for m in gathered))
    dist.destroy_process_group()


main()
