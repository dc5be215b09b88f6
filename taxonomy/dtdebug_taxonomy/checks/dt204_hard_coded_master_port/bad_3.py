from os import environ

import torch.distributed as dist


class Launcher:
    def setup(self, rank):
        environ['MASTER_PORT'] = '12355'  # dt: DT204
        environ.update(MASTER_ADDR="localhost", MASTER_PORT="12356")  # dt: DT204
        dist.init_process_group("nccl", rank=rank, world_size=2)
