import torch
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP
from torchvision import models


def main_worker(gpu, args, loader):
    backbone = models.resnet50().cuda(gpu)
    head = nn.Linear(2048, 1000).cuda(gpu)
    head = DDP(head, device_ids=[gpu])
    groups = [dict(params=head.parameters(), lr=args.lr_head)]
    if args.weights == "finetune":
        groups.append(dict(params=backbone.parameters(), lr=args.lr_backbone))  # dt: DT324
    optimizer = optim.SGD(groups, 0, momentum=0.9)
    for images, target in loader:
        loss = nn.functional.cross_entropy(head(backbone(images.cuda(gpu))), target.cuda(gpu))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
