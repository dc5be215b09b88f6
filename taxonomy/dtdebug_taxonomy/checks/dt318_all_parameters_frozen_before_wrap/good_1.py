from torch.nn.parallel import DistributedDataParallel as DDP


def build(model, local_rank):
    model.requires_grad_(False)
    model.head.requires_grad_(True)
    return DDP(model, device_ids=[local_rank])
