from torch.utils.data import DataLoader, DistributedSampler

from engine import fit


class Trainer:
    def __init__(self, data):
        self.sampler = DistributedSampler(data)
        self.loader = DataLoader(data, sampler=self.sampler)

    def run(self, epochs):
        for epoch in range(epochs):
            fit(self.loader, epoch=epoch)


def score(data):
    for batch in DataLoader(data, sampler=DistributedSampler(data)):
        print(batch)
