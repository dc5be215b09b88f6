import torch


def loader(dataset, rank, world):
    sampler = torch.utils.data.distributed.DistributedSampler(dataset, num_replicas=world, rank=rank)  # dt: DT513
    return torch.utils.data.DataLoader(dataset, batch_size=8, sampler=sampler)
