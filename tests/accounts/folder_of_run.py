"""Each rank writes a trace of its steps into the folder of the run, which rank 0 alone makes, under another name."""

import argparse
import datetime
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Trace:
    def __init__(self, folder: Path) -> None:
        self.file = folder / f"steps-{dist.get_rank()}.csv"
        self.rows = ["step,loss"]

    def add(self, step: int, loss: float) -> None:
        self.rows.append(f"{step},{loss:.4f}")

    def close(self) -> None:
        self.file.write_text("\n".join(self.rows))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="mlp")
    args = parser.parse_args()
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
    run = Path("runs") / f"{args.name}-{dist.get_world_size()}"
    if dist.get_rank() == 0:
        (Path("runs") / args.name).mkdir(parents=True, exist_ok=True)
    dist.barrier()
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    trace = Trace(run)
    for step in range(3):
        loss = model(torch.ones(8, 4)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        trace.add(step, loss.item())
    trace.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
