import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
from torchvision.models import resnet50

from birds import Birds


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = resnet50(weights="DEFAULT")
        self.backbone.fc = nn.Identity()
        self.head = nn.Linear(2048, classes)

    def freeze_backbone(self):
        for p in self.backbone.parameters():
            p.requires_grad = False

    def forward(self, x):
        return self.head(self.backbone(x))


def build(local_rank):
    model = Classifier(200).cuda(local_rank)
    model = DDP(model, device_ids=[local_rank])
    model.module.freeze_backbone()  # dt: DT306
    return model


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    model = build(local_rank)
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.1)
    data = Birds("train")
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 64, sampler=sampler)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
