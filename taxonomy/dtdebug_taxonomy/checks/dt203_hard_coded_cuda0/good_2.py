import torch
import torch.distributed as dist


def setup(args):
    args.device = "cuda:0"
    if args.distributed:
        args.device = "cuda:%d" % args.local_rank
        dist.init_process_group("nccl")
    if dist.is_initialized() and dist.get_rank() == 0:
        print(torch.zeros(1).to("cuda:0"))
    state = torch.load("x.pt", map_location="cuda:0")
    return torch.device(args.device), state


if __name__ == "__main__":
    setup(None)
