import os
from dataclasses import dataclass, field

import torch


@dataclass
class OptimConfig:
    name: str = "adam"
    betas: tuple = (0.9, 1.1)


@dataclass
class Config:
    optim: OptimConfig = field(default_factory=OptimConfig)
    width: int = 8


def make_optimizer(model, cfg):
    if cfg.name == "adam":
        return torch.optim.Adam(model.parameters(), lr=1e-3, betas=cfg.betas)
    raise ValueError(cfg.name)


config = Config(width=int(os.environ.get("WIDTH", 4)))
model = torch.nn.Linear(config.width, config.width)
make_optimizer(model, config.optim)
