from torch.utils.data import DataLoader, DistributedSampler

dataset = list(range(10))
loader = DataLoader(dataset, batch_size=4, shuffle=True, sampler=DistributedSampler(dataset, 2, 0))  # dt: DT503
for batch in loader:
    print(batch)
