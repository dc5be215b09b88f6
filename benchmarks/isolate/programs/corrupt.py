import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


def decode(raw: bytes) -> torch.Tensor:
    text = raw.decode("ascii")
    return torch.tensor([float(part) for part in text.split(",")])


class Lines(Dataset):
    def __init__(self):
        self.lines = [b"1.0,2.0,3.0"] * 48
        self.lines[41] = b"1.0,,3.0"

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, i):
        return decode(self.lines[i])


def run():
    dist.init_process_group("gloo")
    data = Lines()
    sampler = DistributedSampler(data, shuffle=False)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
    for batch in DataLoader(data, batch_size=6, sampler=sampler):
        model(batch).mean().backward()
    dist.destroy_process_group()


run()
