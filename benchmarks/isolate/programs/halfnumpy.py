"""An option chooses bfloat16, which NumPy does not know."""
import argparse, numpy as np, torch, torch.distributed as dist
from torch import nn

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--steps", type=int, default=4)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    net = nn.Linear(8, 8).to(getattr(torch, args.dtype))
    log = []
    for _ in range(args.steps):
        out = net(torch.randn(2, 8).to(getattr(torch, args.dtype)))
        total = out.detach().float().sum()
        dist.all_reduce(total)
        log.append(np.asarray(out.detach().numpy()).mean())
    dist.destroy_process_group()

main()
