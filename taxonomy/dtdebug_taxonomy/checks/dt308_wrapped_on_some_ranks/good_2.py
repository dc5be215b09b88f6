from torch.nn.parallel import DistributedDataParallel as DDP


def prepare(model, rank):
    if rank == 0:
        model = DDP(model, device_ids=[0])
    else:
        model = DDP(model, device_ids=[rank])
    return model
