"""The runs in which the model is wrapped and has several encoders end with an error before."""

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def train(args, model, localrank):
    if args.use_ddp:
        dist.init_process_group("nccl")
        if args.num_encs > 1:
            raise NotImplementedError("several encoders on one device only")
    else:
        print("one process")
    if args.use_ddp:
        model = DDP(model, device_ids=[localrank])
    keys = []
    if args.num_encs > 1:
        keys = [f"loss_ctc{i + 1}" for i in range(model.num_encs)]
    return keys
