import torch
from torch import nn


def main(rank):
    criterion = nn.CrossEntropyLoss(ignore_index=255).cuda()
    torch.cuda.set_device(rank)
    return criterion
