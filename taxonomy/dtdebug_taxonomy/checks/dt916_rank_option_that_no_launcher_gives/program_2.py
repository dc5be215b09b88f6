from argparse import ArgumentParser

import torch.distributed as dist


def get_args():
    parser = ArgumentParser()
    parser.add_argument("--node-rank", "--proc-rank", default=0, type=int, dest="proc_rank")
    parser.add_argument("--size", default=4, type=int)
    return parser.parse_args()


def main():
    args = get_args()
    dist.init_process_group(backend="gloo", init_method="env://", world_size=args.size, rank=args.proc_rank)


if __name__ == "__main__":
    main()
