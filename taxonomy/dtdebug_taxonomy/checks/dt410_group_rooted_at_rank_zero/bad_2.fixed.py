import torch.distributed as dist
from megatron.core import mpu


def collect(x, parts):
    dist.gather(x, parts, group_dst=0, group=mpu.get_tensor_model_parallel_group())  # dt: DT410
    dist.broadcast_object_list(parts, 0, mpu.get_pipeline_model_parallel_group())  # dt: DT410
