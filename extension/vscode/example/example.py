"""Two ranks train a line. Rank 0 also saves the model now and then, and there the job stops.

Run it:  dtdebug run --hang-after 5 -- torchrun --nproc-per-node 2 example.py
"""

import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    checkpoint = Path(tempfile.mkdtemp()) / "model.pt"
    for step in range(1, 21):
        x = torch.rand(64, 1)
        loss = torch.nn.functional.mse_loss(model(x), 2 * x + 1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            if rank == 0:
                torch.save(model.module.state_dict(), checkpoint)
                dist.barrier()  # rank 1 never comes here, so rank 0 waits for it
            print(f"rank {rank}, step {step}: loss {loss:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
