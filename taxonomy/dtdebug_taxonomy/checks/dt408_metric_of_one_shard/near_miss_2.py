"""The metric is made only where there is one process; `options` come from the program's parser."""

import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def main(options, model, valid_set):
    if options.local_rank != -1:
        dist.init_process_group("nccl")
    valid_sampler = None if options.local_rank == -1 else DistributedSampler(valid_set)
    loader = DataLoader(valid_set, sampler=valid_sampler)
    if options.local_rank in [-1, 0]:
        if options.local_rank == -1 and options.evaluate:
            results = evaluate(model, loader)
        best_acc = results["accuracy"]
        print("best", best_acc)
