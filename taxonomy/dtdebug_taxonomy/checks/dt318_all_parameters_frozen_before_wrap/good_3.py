from torch.nn.parallel import DistributedDataParallel as DDP


def build(model, local_rank):
    model.requires_grad_(False)
    model.eval()
    return model, DDP
