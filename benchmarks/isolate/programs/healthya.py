"""Nothing is wrong: it warns, writes, and ends."""
import warnings, torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

def main():
    dist.init_process_group("gloo")
    warnings.warn("the error rate is nan until the first epoch ends")
    data = TensorDataset(torch.randn(50, 4), torch.randn(50, 1))
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data), num_workers=2)
    model = DDP(nn.Linear(4, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in loader:
            opt.zero_grad(); nn.functional.mse_loss(model(x), y).backward(); opt.step()
        if dist.get_rank() == 0:
            torch.save(model.module.state_dict(), "last.pt")
        dist.barrier()
    dist.destroy_process_group()

main()
