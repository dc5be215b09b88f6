import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

MICRO_BATCHES = 4
DIM = 16


class Stage(nn.Module):
    def __init__(self, index, layers=2):
        super().__init__()
        self.index = index
        self.layers = nn.ModuleList(nn.Linear(DIM, DIM) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def loss_fn(output, target):
    difference = output - target
    return difference.square().mean()


def batch_of(step):
    generator = torch.Generator().manual_seed(step)
    x = torch.rand(16, DIM, generator=generator)
    y = torch.rand(16, DIM, generator=generator)
    return x, y


def train_step(schedule, stage, x, y):
    losses = []
    if stage.is_first:
        schedule.step(x)
    elif stage.is_last:
        schedule.step(target=y, losses=losses)
    else:
        schedule.step()
    return losses


def report(step, losses, stage, rank):
    value = torch.zeros(1)
    if stage.is_last:
        value[0] = torch.stack(losses).mean().detach()
    dist.broadcast(value, src=dist.get_world_size() - 1)
    if rank == 0:
        print(f"step {step} loss {value.item():.4f}", flush=True)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    world = dist.get_world_size()
    torch.manual_seed(rank)
    module = Stage(rank)
    stage = PipelineStage(module, rank, world, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=MICRO_BATCHES, loss_fn=loss_fn)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for step in range(6):
        x, y = batch_of(step)
        optimizer.zero_grad()
        losses = train_step(schedule, stage, x, y)
        optimizer.step()
        report(step, losses, stage, rank)
    folder = os.path.dirname(os.path.abspath(__file__))
    torch.save(module.state_dict(), os.path.join(folder, f"stage_{rank}.pt"))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
