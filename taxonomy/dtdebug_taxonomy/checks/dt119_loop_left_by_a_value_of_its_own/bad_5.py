import torch
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def evaluate(model, loader):
    correct, total = 0, 0
    for x, y in loader:
        correct += (model(x).argmax(1) == y).sum().item()
        total += y.numel()
    return correct / total


def main(model, train_set, val_set, opt):
    model = DDP(model)
    loader = DataLoader(train_set, sampler=DistributedSampler(train_set))
    val_loader = DataLoader(val_set, sampler=DistributedSampler(val_set, shuffle=False))
    best, patience = 0.0, 0
    for epoch in range(100):
        for x, y in loader:
            opt.zero_grad()
            F.cross_entropy(model(x), y).backward()
            opt.step()
        accuracy = evaluate(model, val_loader)
        if accuracy > best:
            best, patience = accuracy, 0
        else:
            patience += 1
        if patience >= 5:  # dt: DT119
            break
