import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset

dist.init_process_group("gloo")
data = list(range(100))
mine = Subset(data, range(dist.get_rank(), len(data), dist.get_world_size()))
loader = DataLoader(mine, batch_size=4, shuffle=True)
model = DDP(None)
