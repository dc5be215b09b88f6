import torch
import torch.distributed as dist


def main(local_rank):
    dist.init_process_group("nccl")
    device = f"cuda:{local_rank}"
    return torch.zeros(1).to(device)


if __name__ == "__main__":
    main(0)
