from torch.nn.parallel import DistributedDataParallel as DDP


def evaluate(model, stages, local_rank):
    for stage in stages:
        wrapped = DDP(model, device_ids=[local_rank])  # dt: DT318
        print(stage, wrapped)
        for parameter in model.parameters():
            parameter.requires_grad = False
