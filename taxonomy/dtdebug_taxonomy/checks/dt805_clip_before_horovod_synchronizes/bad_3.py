import horovod.torch as hvd
import torch.nn as nn
from torch import cuda


def train(model, loader, opt):
    opt = hvd.DistributedOptimizer(opt)
    for x in loader:
        model(x).backward()
        cuda.synchronize()
        nn.utils.clip_grad_value_(  # dt: DT805
            model.parameters(),
            0.5,
        )
        opt.step()
        opt.zero_grad()
