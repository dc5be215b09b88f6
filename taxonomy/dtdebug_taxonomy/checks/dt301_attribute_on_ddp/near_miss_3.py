import os

import torch
from torch.nn.parallel import DistributedDataParallel

import model as models


def evaluate(model):
    if hasattr(model, "module"):
        bare = model.module
    else:
        bare = model
    return bare.get_encoder()


def main(args):
    model = models.build().cuda()
    if args.distributed:
        model = DistributedDataParallel(model, device_ids=[int(os.environ["LOCAL_RANK"])])
    torch.manual_seed(0)
    evaluate(model)


main(None)
