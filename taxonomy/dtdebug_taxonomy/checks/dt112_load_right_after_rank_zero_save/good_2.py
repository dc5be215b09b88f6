import torch
import torch.distributed as dist


def check(rank, path):
    if rank == 0:
        torch.save(model.state_dict(), path)
        print(torch.load(path).keys())
    if rank == 0:
        print(torch.load(path))
    box = [path]
    dist.broadcast_object_list(box)
    return torch.load(path)
