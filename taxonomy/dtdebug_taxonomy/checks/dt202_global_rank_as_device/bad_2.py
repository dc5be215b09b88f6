import torch
from torch.distributed import get_rank, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    init_process_group(backend="nccl")
    rank = get_rank()
    device = torch.device(f"cuda:{rank}")  # dt: DT202
    model = torch.nn.Linear(4, 4).to(device)
    return DDP(model, device_ids=[rank])  # dt: DT202


if __name__ == "__main__":
    main()
