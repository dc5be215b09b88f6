import torch.distributed as dist

rank = dist.get_rank()
leaders = dist.new_group([0, 1])
if rank < 2:
    dist.barrier(group=leaders)
    dist.barrier(leaders)


def lora_init(lora_rank, layer):
    if lora_rank == 0:
        dist.broadcast(layer.weight, 0)


def save(rank, sync=False):
    if sync:
        dist.barrier()


if rank == 0:
    save(rank)
