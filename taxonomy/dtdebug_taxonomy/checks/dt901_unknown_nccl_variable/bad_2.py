import os

import torch.distributed as dist

os.environ["NCCL_DEBUG"] = "WARN"
os.environ["NCCL_DISABLE_P2P"] = "1"  # dt: DT901
os.environ.setdefault("NCCL_IB_TIMOUT", "22")  # dt: DT901


def main():
    dist.init_process_group("nccl")


if __name__ == "__main__":
    main()
