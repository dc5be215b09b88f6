from torch.utils.data import DataLoader, DistributedSampler

from engine import train

dataset = list(range(100))
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, sampler=sampler)
for epoch in range(10):
    train(loader, epoch)
