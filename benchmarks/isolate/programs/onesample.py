"""The last batch of a rank has one sample, which batch normalisation refuses."""
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

def build():
    return nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))

def main():
    dist.init_process_group("gloo")
    data = TensorDataset(torch.randn(33, 10), torch.randint(0, 2, (33,)))
    loader = DataLoader(
        data,
        batch_size=8,
        sampler=DistributedSampler(data),
        num_workers=0,
    )
    net = DDP(build())
    opt = torch.optim.Adam(net.parameters())
    for epoch in range(2):
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad(); loss.backward(); opt.step()
    dist.destroy_process_group()

main()
