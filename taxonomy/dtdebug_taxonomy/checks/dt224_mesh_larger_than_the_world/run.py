import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

dist.init_process_group("gloo")
init_device_mesh("cpu", (dist.get_world_size(), 2))
