import json

import torch.distributed as dist


def main(args):
    dist.init_process_group("nccl")
    if dist.get_rank() == 0:
        print("start")
    if dist.get_rank() == 0:
        with open(args.output, "w") as file:  # dt: DT605
            json.dump(vars(args), file)
