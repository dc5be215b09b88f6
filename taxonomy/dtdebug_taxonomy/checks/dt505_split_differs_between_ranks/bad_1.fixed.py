from torch import Generator
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, random_split

dist.init_process_group("gloo")
dataset = list(range(1000))
train, test = random_split(dataset, [900, 100], generator=Generator().manual_seed(0))  # dt: DT505
loader = DataLoader(train, sampler=DistributedSampler(train))
