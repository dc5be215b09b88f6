from torch.utils.data import DataLoader, DistributedSampler


def make(dataset, distributed):
    sampler = DistributedSampler(dataset) if distributed else None
    return DataLoader(dataset, shuffle=(sampler is None), sampler=sampler)
