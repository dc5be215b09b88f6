"""Each rank keeps its own part of a checkpoint."""
import os
import shutil
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

FOLDER = Path(tempfile.gettempdir()) / f"shards-{os.environ['MASTER_PORT']}"


class Keeper:
    def __init__(self, folder, rank):
        self.folder = folder
        self.rank = rank

    def path(self, step):
        return self.folder / f"step{step:04d}" / f"part_{self.rank}.pt"

    def save(self, model, step):
        if self.rank == 0:
            target = self.path(step)
            target.parent.mkdir(parents=True, exist_ok=True)
            torch.save(model.state_dict(), target)
        dist.barrier()

    def load(self, model, step):
        model.load_state_dict(torch.load(self.path(step)))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = nn.Linear(4, 4)
    keeper = Keeper(FOLDER, rank)
    try:
        keeper.save(model, 10)
        keeper.load(model, 10)
        dist.barrier()
    finally:
        if rank == 0:
            shutil.rmtree(FOLDER, ignore_errors=True)
    dist.destroy_process_group()


main()
