import torch
import torch.distributed as dist


def train(model, loader, every):
    window = torch.zeros(1)
    for step, (x, y) in enumerate(loader):
        window += torch.nn.functional.mse_loss(model(x), y).detach()
        if step % every == 0:
            dist.all_reduce(window)
            print(step, window.item())
            window.zero_()
