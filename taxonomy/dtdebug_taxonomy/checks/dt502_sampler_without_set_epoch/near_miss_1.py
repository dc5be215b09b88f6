from torch.utils.data import DataLoader, DistributedSampler

dataset = list(range(100))
loader = DataLoader(dataset, sampler=DistributedSampler(dataset))
for epoch in range(10):
    if hasattr(loader.sampler, "set_epoch"):
        loader.sampler.set_epoch(epoch)
    for batch in loader:
        print(batch)
