import torch
import torch.distributed as dist
from torch.utils.data import DistributedSampler

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
counts = []
for told in (0, rank):
    read = torch.zeros(20)
    read[list(DistributedSampler(range(20), num_replicas=size, rank=told))] = 1
    dist.all_reduce(read)
    counts.append(int((read > 0).sum()))
if rank == 0:
    print(f"rank 0 everywhere: {counts[0]} of 20 samples, its own rank: {counts[1]} of 20", flush=True)
dist.destroy_process_group()
