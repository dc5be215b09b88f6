import torch
from torch.distributed.fsdp import fully_shard


def main(rank):
    model = Transformer()
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    train(model)
    checkpoint = {"step": 100, "model": model.state_dict()}  # dt: DT603
    if rank == 0:
        torch.save(checkpoint, "model.pt")


main(0)
