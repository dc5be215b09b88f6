import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

CONFIG = {"lr": 0.1, "epochs": 1}


def build():
    net = torch.nn.Linear(4, 2)
    return net, torch.optim.SGD(net.parameters(), lr=CONFIG["lr"], momentum=CONFIG["momentum"])


def main():
    dist.init_process_group("gloo")
    net, opt = build()
    for (x,) in DataLoader(TensorDataset(torch.randn(9, 4)), batch_size=2, num_workers=1):
        net(x).sum().backward()
        opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
