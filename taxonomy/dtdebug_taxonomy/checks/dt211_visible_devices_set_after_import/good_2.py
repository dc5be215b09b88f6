import argparse
import os

import torch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", default="0")
    args = parser.parse_args()
    os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu
    print(torch.cuda.device_count())


if __name__ == "__main__":
    main()
