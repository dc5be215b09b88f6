from accelerate import Accelerator
from torch.utils.data import DataLoader, DistributedSampler

accelerator = Accelerator()
loader = DataLoader(data, sampler=DistributedSampler(data))
model = accelerator.prepare(model)
