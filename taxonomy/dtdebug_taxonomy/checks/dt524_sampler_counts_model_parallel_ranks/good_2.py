from megatron.core import mpu
from torch.utils.data.distributed import DistributedSampler


def build(data, args):
    mpu.initialize_model_parallel(args.tensor_parallel_size)
    size, rank = mpu.get_data_parallel_world_size(), mpu.get_data_parallel_rank()
    return DistributedSampler(data, num_replicas=size, rank=rank)
