from dataclasses import dataclass

import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh


@dataclass
class Layout:
    data: int = 1
    tensor: int = 4


def build(layout: Layout):
    shape = (layout.data, layout.tensor)
    return init_device_mesh("cpu", shape, mesh_dim_names=("dp", "tp"))


def main():
    dist.init_process_group("gloo")
    mesh = build(Layout(data=2))
    print(mesh)


main()
