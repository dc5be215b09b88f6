import torch.distributed as dist
from torch.distributed import init_device_mesh


def build(pipeline=2):
    world_size = dist.get_world_size()
    return init_device_mesh("cuda", (2, world_size // (2 * 2), 2), mesh_dim_names=("pp", "dp", "tp"))  # dt: DT224
