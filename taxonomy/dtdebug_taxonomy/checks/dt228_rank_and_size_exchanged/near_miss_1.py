import torch.distributed as dist


def report(name, size, rank):
    print(name, size, rank)


def table(rank, width):
    return [rank] * width


def main(world_size, local_rank):
    report("ranks", world_size, dist.get_rank())
    table(world_size, local_rank)
    print(dist.get_rank(), dist.get_world_size())
