import copy

from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

ema = FSDP(copy.deepcopy(net))
model = FSDP(net)
