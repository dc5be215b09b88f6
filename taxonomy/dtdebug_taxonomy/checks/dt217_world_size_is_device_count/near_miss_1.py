import torch
import torch.distributed as dist


def setup(rank):
    dist.init_process_group("nccl", rank=rank, world_size=torch.cuda.device_count())
