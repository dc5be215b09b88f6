from torch.nn.parallel import DistributedDataParallel as DDP


def stages(model, epoch):
    model = DDP(model, find_unused_parameters=True)
    if epoch > 5:
        for p in model.module.encoder.parameters():
            p.requires_grad = False
    return model


def rewrap(model):
    ddp = DDP(model)
    for p in ddp.module.encoder.parameters():
        p.requires_grad = False
    return DDP(ddp.module)
