"""Warm-up is a share of optimizer steps, of which accumulation leaves none."""
import argparse, torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gradient-accumulation-steps", type=int, default=8)
    parser.add_argument("--warmup", type=float, default=0.2)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    loader = DataLoader(TensorDataset(torch.randn(120, 6)), batch_size=10)
    model = DDP(nn.Linear(6, 6))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    updates = len(loader) // args.gradient_accumulation_steps
    warm = int(updates * args.warmup)
    schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, s / warm))
    for i, (x,) in enumerate(loader):
        (model(x).square().mean() / args.gradient_accumulation_steps).backward()
        if (i + 1) % args.gradient_accumulation_steps == 0:
            opt.step(); schedule.step(); opt.zero_grad()
    dist.destroy_process_group()

main()
