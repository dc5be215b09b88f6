import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def main(model, test_set):
    loader = DataLoader(test_set, sampler=DistributedSampler(test_set, shuffle=False))
    correct = 0
    for x, y in loader:
        correct += (model(x).argmax(1) == y).sum()
    dist.all_reduce(correct)
    print(correct / len(loader.dataset))
