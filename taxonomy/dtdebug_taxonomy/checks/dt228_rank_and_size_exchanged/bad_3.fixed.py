import torch.distributed as dist


def part(rows, rank, world_size):
    return rows[rank::world_size]


def main(rows):
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = part(rows, rank, size)  # dt: DT228
    dist.init_process_group("nccl", rank=rank, world_size=size)  # dt: DT228
    return mine
