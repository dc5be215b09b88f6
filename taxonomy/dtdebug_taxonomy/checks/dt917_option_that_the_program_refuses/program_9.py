import argparse

import torch.distributed as dist


def get_args_parser():
    parser = argparse.ArgumentParser("detector", add_help=False)
    parser.add_argument("--lr", default=1e-4, type=float)
    return parser


if __name__ == "__main__":
    parser = argparse.ArgumentParser("training", parents=[get_args_parser()])
    args = parser.parse_args()
    dist.init_process_group("nccl")
