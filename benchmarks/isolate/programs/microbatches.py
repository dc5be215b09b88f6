"""A pipeline of as many stages as ranks, with a fixed number of microbatches."""

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    layers = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(2)])
    stage = PipelineStage(layers, rank, world, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=2, loss_fn=torch.nn.functional.mse_loss)
    for step in range(3):
        x, y = torch.randn(8, 8), torch.randn(8, 8)
        if world == 1:
            schedule.step(x, target=y, losses=[])
        elif rank == 0:
            schedule.step(x)
        elif rank == world - 1:
            schedule.step(target=y, losses=[])
        else:
            schedule.step()
    dist.destroy_process_group()


main()
