from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def main(data, row):
    sampler = DistributedSampler(data, shuffle=row["shuffle"])
    loader = DataLoader(data, sampler=sampler)
    for epoch in range(10):
        for x in loader:
            print(x)
