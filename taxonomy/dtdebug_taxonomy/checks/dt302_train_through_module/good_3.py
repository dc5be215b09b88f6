from torch.nn.parallel import DistributedDataParallel as DDP


def validate(net, loader):
    ddp = DDP(net)
    score = 0
    for x in loader:
        out = ddp.module(x)
        score += out.mean().item()
    return score
