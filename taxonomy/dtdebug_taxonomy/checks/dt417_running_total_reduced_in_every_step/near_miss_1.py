import torch
import torch.distributed as dist


def evaluate(model, loader, device):
    total = torch.zeros(1, device=device)
    for x, y in loader:
        total += torch.nn.functional.mse_loss(model(x), y)
        shown = total.clone()
        dist.all_reduce(shown)
    return total / len(loader)
