"""A recurrent state has one row for each sample of the batch."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

BATCH = 8


def train() -> None:
    data = TensorDataset(torch.randn(36, 16))
    loader = DataLoader(data, batch_size=BATCH, sampler=DistributedSampler(data), drop_last=True)
    model = DistributedDataParallel(torch.nn.Linear(16, 16))
    state = torch.zeros(BATCH, 16)
    for (x,) in loader:
        state = torch.tanh(state.detach() + model(x))
        state.square().mean().backward()
    if dist.get_rank() == 0:
        print("finished epoch 0", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.barrier()
    dist.destroy_process_group()
