from torch.utils.data import DataLoader, DistributedSampler

dataset = list(range(100))
sampler = DistributedSampler(dataset, 2, 0)
loader = DataLoader(dataset, sampler=sampler)
for epoch in range(10):
    sampler.set_epoch(epoch)
    for batch in loader:
        print(batch)
