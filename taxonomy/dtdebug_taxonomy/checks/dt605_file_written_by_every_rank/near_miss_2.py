import json

import torch.distributed as dist


def save(args):
    with open(args.output, "w") as file:
        json.dump(vars(args), file)


def main(args):
    dist.init_process_group("nccl")
    if dist.get_rank() == 0:
        save(args)
