import torch
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(16)


def main(local_rank):
    torch.distributed.init_process_group(backend="nccl")
    block = Block().cuda(local_rank)
    return DDP(torch.nn.SyncBatchNorm.convert_sync_batchnorm(block), device_ids=[local_rank])  # dt: DT309


if __name__ == "__main__":
    main(0)
