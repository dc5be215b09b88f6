"""Gradients are views of DDP's buckets, and a helper from older days detaches them."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def clear_gradients(model):
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.detach_()
            parameter.grad.zero_()


def main():
    dist.init_process_group("gloo")
    data = TensorDataset(torch.randn(32, 10), torch.randn(32, 1))
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data), num_workers=1)
    net = torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.ReLU(), torch.nn.Linear(20, 1))
    model = DistributedDataParallel(net, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in loader:
        clear_gradients(model)
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
