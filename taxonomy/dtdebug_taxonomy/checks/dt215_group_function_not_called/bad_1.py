import torch
import torch.distributed as dist


def save(model, path):
    if dist.get_rank == 0:  # dt: DT215
        torch.save(model.state_dict(), path)
