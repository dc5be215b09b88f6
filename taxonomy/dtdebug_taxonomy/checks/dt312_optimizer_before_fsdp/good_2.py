import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.nn.parallel import DistributedDataParallel as DDP


def build(model, args):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    if args.ddp:
        return DDP(model), optimizer
    model = FSDP(model, use_orig_params=True)
    return model, optimizer
