"""A mesh of data-parallel times tensor-parallel ranks."""

import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

TENSOR = 2

dist.init_process_group("gloo")
data = 2
mesh = init_device_mesh("cpu", (data, TENSOR), mesh_dim_names=("data", "tensor"))
dist.barrier()
if dist.get_rank() == 0:
    print(f"the mesh is {tuple(mesh.shape)}", flush=True)
dist.destroy_process_group()
