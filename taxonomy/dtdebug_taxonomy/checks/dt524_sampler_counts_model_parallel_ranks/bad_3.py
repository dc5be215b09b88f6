import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.utils.data import DataLoader, DistributedSampler


def setup(data, degree):
    world_size, rank = dist.get_world_size(), dist.get_rank()
    mesh = init_device_mesh("cuda", (world_size // degree, degree), mesh_dim_names=("fsdp", "cp"))
    sampler = DistributedSampler(data, num_replicas=world_size, rank=rank, shuffle=True)  # dt: DT524
    return mesh, DataLoader(data, sampler=sampler)
