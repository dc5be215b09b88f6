import argparse

import os
os.environ['CUDA_VISIBLE_DEVICES'] = '0,1'  # dt: DT211
import torch
from torch import nn
import os

os.environ['CUDA_DEVICE_ORDER'] = 'PCI_BUS_ID'


def main(args):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if args.gpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu  # dt: DT211
    nn.Linear(1, 1).to(device)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", default="")
    main(parser.parse_args())
