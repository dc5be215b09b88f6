import torch
import torch.distributed as dist


def epochs(model, loaders):
    for loader in loaders:
        total = torch.zeros(1)
        for x, y in loader:
            total += torch.nn.functional.mse_loss(model(x), y)
        dist.all_reduce(total)
        print(total.item())
