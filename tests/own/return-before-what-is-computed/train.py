import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def report(losses):
    if dist.get_rank() > 0:
        return
    mean = torch.tensor(losses).mean()
    dist.all_reduce(mean)
    print("mean loss", mean.item() / dist.get_world_size())


def main():
    dist.init_process_group("gloo")
    model = DDP(nn.Linear(3, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step in range(12):
        loss = model(torch.randn(5, 3)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        if (step + 1) % 4 == 0:
            report(losses)
            losses.clear()


if __name__ == "__main__":
    main()
