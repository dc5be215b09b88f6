from torch.nn.parallel import DistributedDataParallel as DDP


def build(model, local_rank):
    for parameter in model.backbone.parameters():
        parameter.requires_grad = False
    return DDP(model, device_ids=[local_rank])
