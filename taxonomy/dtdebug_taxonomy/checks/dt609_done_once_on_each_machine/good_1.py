import torch
import torch.distributed as dist


def save(model, args):
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), args.output)
