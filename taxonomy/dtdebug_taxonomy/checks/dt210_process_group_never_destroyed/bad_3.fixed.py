import argparse

import torch


class Trainer:
    def __init__(self, args):
        torch.distributed.init_process_group(args.backend, init_method="env://")  # dt: DT210

    def fit(self):
        print("trains")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="nccl")
    Trainer(parser.parse_args()).fit()
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
