from mine import initialize_model_parallel
from torch.utils.data import DistributedSampler


def build(data, args):
    if args.tensor_parallel_size > 1:
        initialize_model_parallel(args.tensor_parallel_size)
        return data
    if not args.use_tensor_parallel:
        return DistributedSampler(data)
    return data
