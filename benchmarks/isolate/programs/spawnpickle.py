"""Loader workers are spawned, since the libraries under the dataset dislike fork; its transform can't be pickled."""
import torch, torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Pictures(Dataset):
    def __init__(self, size):
        self.transform = lambda x: (x - 0.5) / size
    def __len__(self):
        return 40
    def __getitem__(self, i):
        return self.transform(torch.full((3, 8, 8), float(i)))

def main():
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Flatten(), nn.Linear(192, 4)))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Pictures(0.25), batch_size=10, num_workers=2, multiprocessing_context="spawn", persistent_workers=True)
    for _ in range(2):
        for x in loader:
            model(x).square().mean().backward()
            opt.step(); opt.zero_grad()
    dist.destroy_process_group()

if __name__ == "__main__":
    main()
