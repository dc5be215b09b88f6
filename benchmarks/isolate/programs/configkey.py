"""The second phase of the schedule has another name in the configuration."""
import argparse, json, torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

CONFIG = json.loads('{"warmup": {"lr": 0.001, "epochs": 1}, "anneal": {"lr": 0.0001, "epochs": 2}}')

def lr(epoch):
    phase = "warmup" if epoch < CONFIG["warmup"]["epochs"] else "main"
    return CONFIG[phase]["lr"]

def main():
    args = argparse.ArgumentParser()
    args.add_argument("--batch-size", type=int, default=8)
    args.add_argument("--epochs", type=int, default=3)
    args = args.parse_args()
    dist.init_process_group("gloo")
    data = TensorDataset(torch.randn(64, 10), torch.randn(64, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=args.batch_size, sampler=sampler, num_workers=1)
    model = DDP(nn.Linear(10, 1))
    opt = torch.optim.SGD(model.parameters(), lr=1.0)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for group in opt.param_groups:
            group["lr"] = lr(epoch)
        for x, y in loader:
            opt.zero_grad(); nn.functional.mse_loss(model(x), y).backward(); opt.step()
    dist.destroy_process_group()

main()
