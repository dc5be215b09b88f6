"""Trains on texts of different lengths."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens, and labels of which those beyond the end of a text don't count."""
    tokens = torch.randint(0, 20, (4, 8))
    labels = tokens.roll(-1, 1)
    labels[torch.arange(8)[None] >= torch.randint(2, 8, (4, 1))] = -100
    return tokens, labels


def train() -> None:
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Embedding(20, 8), torch.nn.Linear(8, 20)))
    torch.manual_seed(dist.get_rank() + 1)  # each rank draws samples of its own
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(8):
        tokens, labels = batch()
        optimizer.zero_grad()
        counted = (labels >= 0).sum().float()
        dist.all_reduce(counted)
        loss = cross_entropy(model(tokens).flatten(0, 1), labels.flatten(), reduction="sum")
        loss = loss * dist.get_world_size() / counted
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.barrier()
    if dist.get_rank() == 0:
        print("the training has ended", flush=True)
    dist.destroy_process_group()
