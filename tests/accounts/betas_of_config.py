"""Training from a nested configuration."""

from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class OptimizerConfig:
    rate: float = 3e-4
    betas: tuple = (0.9, 1.95)
    decay: float = 0.1


@dataclass
class ModelConfig:
    width: int = 16
    depth: int = 3


@dataclass
class Config:
    model: ModelConfig = field(default_factory=ModelConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    steps: int = 4


def build_model(config):
    layers = []
    for _ in range(config.depth):
        layers += [nn.Linear(config.width, config.width), nn.ReLU()]
    return nn.Sequential(*layers)


def build_optimizer(model, config):
    return torch.optim.AdamW(
        model.parameters(), lr=config.rate, betas=config.betas, weight_decay=config.decay
    )


def main():
    config = Config()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DDP(build_model(config.model))
    optimizer = build_optimizer(model, config.optimizer)
    for step in range(config.steps):
        loss = model(torch.randn(4, config.model.width)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0:
            print(step, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
