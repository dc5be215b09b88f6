import torch
from torch.utils.data import DataLoader, DistributedSampler


def main(model, test_set):
    sampler = DistributedSampler(test_set, shuffle=False)
    test_loader = DataLoader(test_set, batch_size=64, sampler=sampler)
    correct = 0
    with torch.no_grad():
        for x, y in test_loader:
            correct += (model(x).argmax(1) == y).sum().item()
    correct /= len(test_loader.dataset)  # dt: DT527
    print(correct)
