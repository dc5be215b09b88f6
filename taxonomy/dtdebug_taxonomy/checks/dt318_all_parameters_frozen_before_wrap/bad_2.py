import torch


def evaluate(model, local_rank):
    for parameter in model.parameters():
        parameter.requires_grad = False
    model.eval()
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[local_rank])  # dt: DT318
    return model
