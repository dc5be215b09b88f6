import torch
import torch.distributed as dist


def save(model, path):
    if dist.is_available() and dist.is_initialized() and dist.get_rank() == 0:
        torch.save(model.state_dict(), path)
