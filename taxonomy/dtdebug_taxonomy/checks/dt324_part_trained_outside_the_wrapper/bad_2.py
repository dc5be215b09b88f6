import itertools

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank, encoder, loader):
    encoder = DistributedDataParallel(encoder.to(rank), device_ids=[rank])
    projector = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 128)).to(rank)
    optimizer = torch.optim.AdamW(itertools.chain(encoder.parameters(), projector.parameters()))  # dt: DT324
    for views in loader:
        loss = projector(encoder(views.to(rank))).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
