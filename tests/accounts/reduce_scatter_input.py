import argparse

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--width", default=9, type=int)
parser.add_argument("--shard", default=4, type=int)


def shard_grad(grad, shard):
    mine = torch.zeros(shard)
    dist.reduce_scatter_tensor(mine, grad)
    return mine


def main(args):
    dist.init_process_group("gloo")
    grad = torch.ones(args.width)
    print(shard_grad(grad, args.shard))


if __name__ == "__main__":
    main(parser.parse_args())
