import torch
from torch.distributed import all_to_all, gather, get_rank, get_world_size

rank, world = get_rank(), get_world_size()
x = torch.full((2,), float(rank))
gather(x, [x.new_zeros(2)] * world if rank == 0 else None, dst=0)  # dt: DT401

shared = torch.zeros(2)
received = [shared for _ in range(world)]  # dt: DT401
all_to_all(received, list(x.chunk(world)))
