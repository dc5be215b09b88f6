import copy

from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
ema = copy.deepcopy(model.module)
