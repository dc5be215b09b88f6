import torch
from mine import stage_of
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def main(model, base, config):
    for epoch in range(config.epochs):
        train_data = stage_of(base, epoch // config.epochs_per_stage, shuffle=True)
        loader = DataLoader(train_data, batch_size=8, sampler=DistributedSampler(train_data, shuffle=True))
        for batch in loader:
            model(batch).backward()
