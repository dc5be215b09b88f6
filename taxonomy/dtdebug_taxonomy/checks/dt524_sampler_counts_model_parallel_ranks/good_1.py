import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.utils.data import DistributedSampler


def setup(data, degree):
    mesh = init_device_mesh("cuda", (dist.get_world_size() // degree, degree), mesh_dim_names=("dp", "tp"))
    return DistributedSampler(data, num_replicas=mesh["dp"].size(), rank=mesh.get_local_rank("dp"))
