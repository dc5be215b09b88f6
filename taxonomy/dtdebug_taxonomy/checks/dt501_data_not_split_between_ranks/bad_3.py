import argparse

import torch
from torch.distributed.fsdp import FullyShardedDataParallel


class Trainer:
    def __init__(self, model, args):
        self.model = FullyShardedDataParallel(model)
        self.data = torch.utils.data.TensorDataset(torch.randn(100, 4))
        self.loader = torch.utils.data.DataLoader(self.data, args.batch_size, True)  # dt: DT501


if __name__ == "__main__":
    torch.distributed.init_process_group("nccl")
    Trainer(torch.nn.Linear(4, 4), argparse.Namespace(batch_size=4))
