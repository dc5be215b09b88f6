import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def train(model, loader, optimizer, scaler, args):
    model = FSDP(model)
    for x, y in loader:
        with torch.autocast("cuda"):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        if args.distributed:
            dist.all_reduce(loss, op=dist.ReduceOp.SUM)  # dt: DT416
            loss /= args.world_size
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
