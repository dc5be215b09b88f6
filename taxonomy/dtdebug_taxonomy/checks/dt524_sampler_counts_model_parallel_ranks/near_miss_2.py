import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.utils.data import DistributedSampler


def loader(data, sequence):
    mesh = init_device_mesh("cuda", (dist.get_world_size() // sequence, sequence), mesh_dim_names=("dp", "sp"))
    if sequence > 1:
        rank, size = mesh.get_local_rank("dp"), mesh.size(0)
    else:
        rank, size = dist.get_rank(), dist.get_world_size()
    return DistributedSampler(data, num_replicas=size, rank=rank)
