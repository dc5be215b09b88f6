import argparse
import json

import torch
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def log_metrics(loss, step, path, args):
    if dist.get_rank() == 0 and args.log and step > 0 and step % 5 == 0:
        total = loss.detach().clone()
        dist.all_reduce(total)
        total /= dist.get_world_size()
        with open(path, "a") as f:
            f.write(json.dumps({"step": step, "loss": total.item()}) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-log", dest="log", action="store_false")
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    model = DDP(nn.Linear(12, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(args.steps):
        loss = model(torch.randn(6, 12)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        log_metrics(loss, step, "metrics.jsonl", args)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
