"""Load pretrained weights before the training."""

import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Config:
    def __init__(self):
        self.weights = os.path.join(tempfile.gettempdir(), "map-to-device.pt")
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.device = f"cuda:{self.local_rank}"


def build():
    return nn.Sequential(nn.Linear(6, 32), nn.GELU(), nn.Linear(32, 3))


def load_weights(model, config):
    state = torch.load(config.weights, map_location=config.device, weights_only=True)
    missing, unexpected = model.load_state_dict(state, strict=False)
    if missing or unexpected:
        print("not loaded:", missing, unexpected)
    return model


def train(model, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        loss = model(torch.randn(8, 6)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss


def main():
    dist.init_process_group("gloo")
    config = Config()
    if dist.get_rank() == 0:
        torch.save(build().state_dict(), config.weights)
    dist.barrier()
    model = DDP(load_weights(build(), config))
    loss = train(model, 5)
    if dist.get_rank() == 0:
        print("loss", loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
