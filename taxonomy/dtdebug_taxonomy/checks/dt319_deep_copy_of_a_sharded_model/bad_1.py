import copy

from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

model = FSDP(net, device_id=0)
ema = copy.deepcopy(model)  # dt: DT319
