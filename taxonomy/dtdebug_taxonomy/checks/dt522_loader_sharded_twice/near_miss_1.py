"""Which sampler it is depends on whether Accelerate is used."""

from accelerate import Accelerator
from torch.utils.data import DataLoader, DistributedSampler

accelerator = Accelerator()
loader = DataLoader(data, sampler=None if use_accelerate else DistributedSampler(data))
loader = accelerator.prepare(loader)
