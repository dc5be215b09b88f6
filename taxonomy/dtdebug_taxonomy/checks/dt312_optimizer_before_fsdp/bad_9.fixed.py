import torch
from torch.distributed.fsdp import fully_shard


def build(model):
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    fully_shard(model.head)
    optimizer = torch.optim.AdamW(model.parameters())  # dt: DT312
    return model, optimizer
