from torch.distributed import is_initialized
from torch.distributed import destroy_process_group
import os

import torch
from torch.distributed import init_process_group


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    init_process_group(backend="nccl")  # dt: DT210
    print("trains")


if __name__ == "__main__":
    main()
    if is_initialized():
        destroy_process_group()
