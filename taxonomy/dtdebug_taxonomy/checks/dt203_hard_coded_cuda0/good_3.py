import torch
import torch.distributed as dist


def device_for(args):
    if args.world_size > 1:
        dist.init_process_group("nccl")
        return torch.device("cuda", args.local_rank)
    return torch.device("cpu")


def demo(device="cuda:0"):
    return torch.zeros(1, device=device)


if __name__ == "__main__":
    demo()
