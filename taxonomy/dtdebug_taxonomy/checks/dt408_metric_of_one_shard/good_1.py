import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def main(model, test_set):
    dist.init_process_group("nccl")
    loader = DataLoader(test_set, sampler=DistributedSampler(test_set, shuffle=False))
    counts = torch.zeros(2, device="cuda")
    for x, y in loader:
        counts += torch.tensor([(model(x).argmax(1) == y).sum(), len(y)], device="cuda")
    dist.all_reduce(counts)
    if dist.get_rank() == 0:
        accuracy = (counts[0] / counts[1]).item()
        print("accuracy", accuracy)


if __name__ == "__main__":
    main(None, [])
