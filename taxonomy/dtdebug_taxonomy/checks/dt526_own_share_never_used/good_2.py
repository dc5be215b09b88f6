import torch.distributed as dist


def run(rank, world_size, data):
    while True:
        print(len(data))
        data = data.chunk(world_size)[rank]
