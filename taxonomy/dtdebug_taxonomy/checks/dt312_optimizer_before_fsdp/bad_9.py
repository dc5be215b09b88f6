import torch
from torch.distributed.fsdp import fully_shard


def build(model):
    optimizer = torch.optim.AdamW(model.parameters())  # dt: DT312
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    fully_shard(model.head)
    return model, optimizer
