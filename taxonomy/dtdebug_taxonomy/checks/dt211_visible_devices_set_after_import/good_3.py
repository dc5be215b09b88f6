import os
import sys

if len(sys.argv) > 1:
    os.environ["CUDA_VISIBLE_DEVICES"] = sys.argv[1]


def work():
    import torch

    return torch.cuda.device_count()


work()
