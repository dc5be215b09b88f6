import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Curriculum(Dataset):
    def __init__(self):
        self.length = 4

    def set_epoch(self, epoch):
        self.length = 4 * (epoch + 1)

    def __len__(self):
        return 16

    def __getitem__(self, i):
        return torch.ones(self.length)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(1, 1)

    def forward(self, x, expected):
        assert x.shape[1] == expected, f"sequence of {x.shape[1]}, expected {expected}"
        return self.head(x.mean(1, keepdim=True))


def main():
    dist.init_process_group("gloo")
    data = Curriculum()
    loader = DataLoader(data, batch_size=4, num_workers=1, persistent_workers=True)
    model = torch.nn.parallel.DistributedDataParallel(Net())
    for epoch in range(2):
        data.set_epoch(epoch)
        for x in loader:
            model(x, data.length).sum().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
