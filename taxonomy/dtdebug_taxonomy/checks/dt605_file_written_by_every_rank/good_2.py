import json

import torch.distributed as dist


def main(args):
    dist.init_process_group("nccl")
    if dist.get_rank() == 0:
        print("start")
    with open(f"{args.output}.{dist.get_rank()}", "w") as file:
        json.dump(vars(args), file)
