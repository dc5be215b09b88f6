import numpy as np
import torch
import torch.distributed as dist


class Pairs(torch.utils.data.Dataset):
    def __init__(self, pairs):
        order = np.random.permutation(len(pairs))  # dt: DT523
        self.pairs = [pairs[i] for i in order]

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        return self.pairs[i]


def main(pairs):
    dist.init_process_group("nccl")
    data = Pairs(pairs)
    sampler = torch.utils.data.DistributedSampler(data)
    return torch.utils.data.DataLoader(data, sampler=sampler)


main([])
