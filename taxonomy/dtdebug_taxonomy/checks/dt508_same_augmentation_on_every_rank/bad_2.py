import argparse
import random

import torch
from torchvision import transforms


def seed_all(seed):
    random.seed(seed)
    torch.manual_seed(seed)  # dt: DT508


def main(args):
    seed_all(args.seed)
    torch.distributed.init_process_group("nccl")
    augment = transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    return augment, model


if __name__ == "__main__":
    main(argparse.Namespace(seed=1))
