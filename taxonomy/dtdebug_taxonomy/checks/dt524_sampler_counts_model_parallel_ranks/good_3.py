from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DistributedSampler


def build(model, data, nodes, gpus):
    mesh = init_device_mesh("cuda", (nodes, gpus), mesh_dim_names=("replicate", "shard"))
    fully_shard(model, mesh=mesh)
    return DistributedSampler(data)
