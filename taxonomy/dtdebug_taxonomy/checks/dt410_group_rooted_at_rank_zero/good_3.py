import torch.distributed as dist
from megatron.core import mpu


def share(x):
    dist.broadcast(x, mpu.get_tensor_model_parallel_src_rank(), group=mpu.get_tensor_model_parallel_group())
