"""Nothing is wrong: an uneven number of batches, joined."""
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.distributed.algorithms.join import Join

def main():
    dist.init_process_group("gloo")
    model = DDP(nn.Linear(3, 3))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    with Join([model]):
        for _ in range(3 + dist.get_rank()):
            opt.zero_grad(); model(torch.randn(2, 3)).sum().backward(); opt.step()
    dist.destroy_process_group()

main()
