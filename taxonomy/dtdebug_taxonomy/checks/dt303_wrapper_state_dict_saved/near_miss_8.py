import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def train(args, model, amp):
    if args.distributed:
        model = DDP(model)
        bare = model.module
    else:
        bare = model
    torch.save(bare.state_dict(), "bare.pt")


def resume(net):
    net = DDP(net)
    checkpoint = torch.load("model.pt", map_location="cpu")
    net.load_state_dict(checkpoint["model"])
    amp.load_state_dict(checkpoint["amp"])
    torch.save({"model": net.state_dict()}, "model.pt")
