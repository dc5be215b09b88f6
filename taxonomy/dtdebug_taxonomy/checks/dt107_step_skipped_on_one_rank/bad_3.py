import argparse

import horovod.torch as hvd
import numpy as np
import torch


def train(args, model, optimizer, loader):
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    for i, (x, y) in enumerate(loader):
        if len(y) == 0:  # dt: DT107
            continue
        loss = model(x, y)
        if loss.item() > args.max_loss or np.isnan(loss.item()):  # dt: DT107
            optimizer.zero_grad()
            continue
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    hvd.init()
    train(parser.parse_args(), *build())
