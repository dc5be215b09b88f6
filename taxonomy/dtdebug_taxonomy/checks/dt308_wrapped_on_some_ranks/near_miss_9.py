from torch.nn.parallel import DistributedDataParallel


def wrap(model, local_rank, distributed):
    device = local_rank
    if "cuda" in str(device) and distributed:
        model = DistributedDataParallel(model, device_ids=[local_rank])
    return model
