import os

from torch.distributed.device_mesh import init_device_mesh

world_size = int(os.environ["WORLD_SIZE"])
mesh = init_device_mesh("cuda", mesh_shape=(2, world_size))  # dt: DT224
