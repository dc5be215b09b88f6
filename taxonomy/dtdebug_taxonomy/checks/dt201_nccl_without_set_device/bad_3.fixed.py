import os
import argparse
import torch


class Trainer:
    def __init__(self, args):
        torch.distributed.init_process_group(args.backend if args.backend else "nccl")
        torch.distributed.barrier()


def setup():
    backend = "nccl"
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group(backend)  # dt: DT201
    return torch.zeros(1).to("cuda")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    setup()
