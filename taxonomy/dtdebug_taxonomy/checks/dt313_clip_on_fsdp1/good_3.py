import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.nn.parallel import DistributedDataParallel as DDP


def wrap(model, args):
    return FSDP(model) if args.fsdp else DDP(model)


def step(model, args):
    model = wrap(model, args)
    if isinstance(model, FSDP):
        model.clip_grad_norm_(args.clip)
    else:
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
    if args.fsdp:
        return model.clip_grad_norm_(args.clip)
    return torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
