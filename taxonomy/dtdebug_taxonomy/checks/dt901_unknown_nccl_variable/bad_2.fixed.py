import os

import torch.distributed as dist

os.environ["NCCL_DEBUG"] = "WARN"
os.environ["NCCL_P2P_DISABLE"] = "1"  # dt: DT901
os.environ.setdefault("NCCL_IB_TIMEOUT", "22")  # dt: DT901


def main():
    dist.init_process_group("nccl")


if __name__ == "__main__":
    main()
