import argparse
from pathlib import Path

import torch


class Trainer:
    def __init__(self, model, args):
        self.model = torch.nn.parallel.DistributedDataParallel(model)
        self.dir = Path(args.output) / "checkpoints"
        if not self.dir.exists():
            self.dir.mkdir(parents=True, exist_ok=True)  # dt: DT511


def prepare(path):
    import os

    if os.path.isdir(path) is False:
        os.makedirs(path, exist_ok=True)  # dt: DT511


if __name__ == "__main__":
    torch.distributed.init_process_group("nccl")
    args = argparse.Namespace(output="out")
    prepare(args.output)
    Trainer(torch.nn.Linear(1, 1), args)
