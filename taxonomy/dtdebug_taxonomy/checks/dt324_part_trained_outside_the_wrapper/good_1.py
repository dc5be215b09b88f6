import torch
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP
from torchvision import models


def main_worker(gpu, args, loader):
    backbone = models.resnet50().cuda(gpu)
    backbone.requires_grad_(False)
    head = DDP(nn.Linear(2048, 1000).cuda(gpu), device_ids=[gpu])
    optimizer = optim.SGD(head.parameters(), args.lr_head)
    for images, target in loader:
        loss = nn.functional.cross_entropy(head(backbone(images.cuda(gpu))), target.cuda(gpu))
        loss.backward()
        optimizer.step()
