from torch.utils.data import DataLoader, DistributedSampler

dataset = list(range(100))
test_loader = DataLoader(dataset, sampler=DistributedSampler(dataset, shuffle=False))
val_sampler = DistributedSampler(dataset)
val_loader = DataLoader(dataset, sampler=val_sampler)
for epoch in range(10):
    for batch in test_loader:
        print(batch)
