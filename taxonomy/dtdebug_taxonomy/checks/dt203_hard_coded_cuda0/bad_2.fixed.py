import os
import torch
from torch.nn.parallel import DistributedDataParallel


def main():
    torch.distributed.init_process_group(backend="nccl")
    device = torch.device(f"cuda:{os.environ['LOCAL_RANK']}" if torch.cuda.is_available() else "cpu")  # dt: DT203
    model = torch.nn.Linear(2, 2).to(device)
    return DistributedDataParallel(model)


if __name__ == "__main__":
    main()
