import torch
import torch.distributed as dist


def report(model, rank):
    scores = {"loss": torch.tensor(model.loss)}
    for value in scores.values():
        dist.all_reduce(value)
    if rank == 0:
        scores["seconds"] = torch.tensor(model.seconds)
    return scores


def share(rank):
    found = []
    if rank == 0:
        found.append("weights.pt")
    found = exchange(found)
    for name in found:
        dist.broadcast(load(name), 0)


def either(rank):
    sizes = {}
    if rank == 0:
        sizes["own"] = torch.tensor(1)
    else:
        sizes["own"] = torch.tensor(0)
    for value in sizes.values():
        dist.all_reduce(value)
