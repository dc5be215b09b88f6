import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint


def forward(block, x):
    return checkpoint(block, x, use_reentrant=True)


static = DDP(torch.nn.Linear(1, 1), find_unused_parameters=True, static_graph=True)
plain = DDP(torch.nn.Linear(1, 1), find_unused_parameters=False)
