import torch.distributed as dist
from megatron.core import mpu
from torch.utils.data.distributed import DistributedSampler


def build(data, args):
    mpu.initialize_model_parallel(args.tensor_parallel_size)
    return DistributedSampler(data, num_replicas=dist.get_world_size(), rank=dist.get_rank())  # dt: DT524
