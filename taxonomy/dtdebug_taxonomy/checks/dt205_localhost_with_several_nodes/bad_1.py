import argparse
import os

import torch.multiprocessing as mp


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", "--nodes", default=1, type=int)
    parser.add_argument("-g", "--gpus", default=1, type=int)
    args = parser.parse_args()
    args.world_size = args.gpus * args.nodes
    os.environ["MASTER_ADDR"] = "localhost"  # dt: DT205
    os.environ["MASTER_PORT"] = "8888"
    mp.spawn(print, nprocs=args.gpus)


if __name__ == "__main__":
    main()
