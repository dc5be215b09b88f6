import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils import data
from torch.utils.data.distributed import DistributedSampler


def cycle(iterable):
    while True:
        for i in iterable:
            yield i


class Trainer:
    def __init__(self, model, dataset, rank, world_size, is_ddp):
        self.model = DDP(model, device_ids=[rank]) if is_ddp else model
        sampler = DistributedSampler(dataset, rank=rank, num_replicas=world_size, shuffle=True) if is_ddp else None  # dt: DT502
        dataloader = data.DataLoader(dataset, batch_size=8, sampler=sampler, shuffle=not is_ddp, drop_last=True)
        self.loader = cycle(dataloader)
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def train(self):
        batch = next(self.loader).cuda()
        self.model(batch).mean().backward()
        self.optimizer.step()
