import torch
import torch.distributed as dist


def main(local_rank):
    dist.init_process_group("nccl", device_id=torch.device("cuda", local_rank))
    return torch.zeros(1, device="cuda")


if __name__ == "__main__":
    main(0)
