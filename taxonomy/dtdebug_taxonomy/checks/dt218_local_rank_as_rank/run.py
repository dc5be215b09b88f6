"""Two machines with two processes each: what the samplers read, once by the local rank and once by the rank."""

from torch.utils.data import DistributedSampler


def part(rank):
    return list(DistributedSampler(range(8), num_replicas=4, rank=rank, shuffle=False))


local, right = {machine: [part(r) for r in (0, 1)] for machine in (0, 1)}, [part(r) for r in range(4)]
seen = {i for parts in local.values() for p in parts for i in p}
print(f"machines 0 and 1 read the same part: {local[0] == local[1]}, {len(seen)} of 8 samples are seen")
print(f"by the rank: {len({i for p in right for i in p})} of 8")
