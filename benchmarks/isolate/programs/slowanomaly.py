"""Someone has left anomaly detection on; the model is deep, so that each step keeps hundreds of stacks."""
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    torch.autograd.set_detect_anomaly(True)
    model = DDP(nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.LayerNorm(16)) for _ in range(120)]))
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(100000):
        opt.zero_grad(); model(torch.randn(4, 16)).square().mean().backward(); opt.step()
    dist.destroy_process_group()

main()
