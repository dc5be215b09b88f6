"""A model with a branch on data is compiled as one graph."""
import torch, torch.distributed as dist
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)
    def forward(self, x):
        return self.a(x) if x.sum() > 0 else self.b(x)

def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = torch.compile(Net(), backend="eager", fullgraph=True)
    for step in range(5):
        x = torch.randn(3, 6)
        y = net(x).sum()
        dist.all_reduce(y.detach())
    dist.destroy_process_group()

main()
