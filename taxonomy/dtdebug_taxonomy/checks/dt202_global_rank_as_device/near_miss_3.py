import torch
import torch.distributed as dist


def start(args):
    torch.cuda.set_device(args.local_rank)
    dist.init_process_group(
        backend="nccl",
        init_method="tcp://127.0.0.1:{}".format(args.port),
        world_size=torch.cuda.device_count(),
        rank=args.local_rank,
    )


def wrap(model):
    local_rank = dist.get_rank()
    return torch.nn.parallel.DistributedDataParallel(model, device_ids=[local_rank], output_device=local_rank)
