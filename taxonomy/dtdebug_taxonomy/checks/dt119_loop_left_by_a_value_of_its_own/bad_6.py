"""The batches come through a generator that shows the progress, and the losses wait in a list."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def show_each(batches, every):
    for number, batch in enumerate(batches):
        yield batch
        if number % every == 0:
            print(number)


def main(model, train_set, opt):
    model = DDP(model)
    loader = DataLoader(train_set, sampler=DistributedSampler(train_set))
    recent = []
    for batch in show_each(loader, 10):
        opt.zero_grad()
        loss = model(batch).mean()
        loss.backward()
        opt.step()
        recent.append(loss.detach())
        if torch.stack(recent).mean() < 0.1:  # dt: DT119
            break
