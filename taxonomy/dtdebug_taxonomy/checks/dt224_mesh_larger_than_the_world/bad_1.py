import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

dist.init_process_group("nccl")
tp = 4
mesh = init_device_mesh("cuda", (dist.get_world_size(), tp), mesh_dim_names=("dp", "tp"))  # dt: DT224
