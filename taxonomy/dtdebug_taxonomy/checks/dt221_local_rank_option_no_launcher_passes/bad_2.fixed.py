import os
from argparse import ArgumentParser

import torch


def get_args():
    parser = ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument(  # dt: DT221
        "--local_rank", "--local-rank",
        default=int(os.environ.get("LOCAL_RANK", -1)),
        type=int,
        help="set by the launcher",
    )
    return parser.parse_args()


def main():
    args = get_args()
    device = torch.device("cuda", args.local_rank)
    if args.local_rank != -1:
        torch.distributed.init_process_group(backend="nccl")
    train(device)


main()
