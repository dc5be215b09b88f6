import os

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main(args, model, loader, callbacks):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    if rank == 0:
        os.makedirs(args.logs, exist_ok=True)
        if os.path.exists(args.log_file) and not args.resume:
            print("This experiment exists already.")
            return -1  # dt: DT106
    model = DistributedDataParallel(model)
    for epoch in range(args.epochs):
        for batch in loader:
            loss = model(batch).mean()
            loss.backward()
            if rank == 0:
                callbacks.log(loss.item())
                if callbacks.early_stop:
                    break  # dt: DT117
            dist.all_reduce(loss)
    return 0
