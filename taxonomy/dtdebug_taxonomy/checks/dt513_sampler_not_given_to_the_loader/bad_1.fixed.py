from torch.utils.data import DataLoader, DistributedSampler


def loader(dataset, epochs):
    sampler = DistributedSampler(dataset)  # dt: DT513
    batches = DataLoader(dataset, batch_size=8, sampler=sampler)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        yield from batches
