"""A module whose callers decide who loads; only another function of it wraps models."""

import torch
from torch.distributed.fsdp import fully_shard


def prepare(model, device):
    for layer in model.layers:
        fully_shard(layer)
    return model.to(device)


def read_model(folder, is_main_process):
    if is_main_process or not folder.rank0_only:
        return torch.load(folder / "model.bin", weights_only=True)
    return {}
