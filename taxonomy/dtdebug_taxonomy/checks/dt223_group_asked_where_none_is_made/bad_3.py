import torch
import torch.distributed as dist


def evaluate(args):
    if args.distributed:
        dist.init_process_group("gloo")
    total = torch.tensor(float(score(args)))
    dist.all_reduce(total)  # dt: DT223
    return total
