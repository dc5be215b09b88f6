import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def main(model, test_set):
    dist.init_process_group("nccl")
    loader = DataLoader(test_set, batch_size=32, sampler=DistributedSampler(test_set, shuffle=False))
    correct = total = 0
    for x, y in loader:
        correct += (model(x).argmax(1) == y).sum().item()
        total += len(y)
    if dist.get_rank() == 0:
        print("accuracy", correct / total)  # dt: DT408


if __name__ == "__main__":
    main(None, [])
