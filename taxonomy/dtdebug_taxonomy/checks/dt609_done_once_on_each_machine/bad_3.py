import torch
import torch.distributed as dist


def save(model, args):
    if args.local_rank == 0:
        torch.save(model.state_dict(), args.output)  # dt: DT609
    print(dist.get_rank())
