import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint


class Net(torch.nn.Module):
    def forward(self, x):
        return checkpoint(self.block, x, use_reentrant=False)


ddp = DDP(Net(), find_unused_parameters=True)  # dt: DT304
