"""Rank 0 starts it, or the one process of a run that is not distributed."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.tensorboard import SummaryWriter


class Trainer:
    def __init__(self, config, net):
        self.config = config
        torch.distributed.init_process_group("nccl")
        self.net = DDP(net, device_ids=[config["local_rank"]]) if config["distributed"] else net
        if self.config["global_rank"] == 0 or (not config["distributed"]):
            self.writer = SummaryWriter(config["save_dir"])
        if config["global_rank"] == 0:
            print(net)


if __name__ == "__main__":
    Trainer({}, torch.nn.Linear(2, 2))
