from accelerate import Accelerator
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler

accelerator = Accelerator()
sampler = RandomSampler(data) if accelerator else DistributedSampler(data)
loader = accelerator.prepare(DataLoader(data, sampler=RandomSampler(data)))
