import argparse
import os

import torch.distributed as dist


def main(args):
    os.environ["MASTER_PORT"] = args.port
    dist.init_process_group("nccl", init_method=f"tcp://{args.host}:{args.port}")
    dist.init_process_group("nccl", init_method="env://")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", default="29500")
    main(parser.parse_args())
