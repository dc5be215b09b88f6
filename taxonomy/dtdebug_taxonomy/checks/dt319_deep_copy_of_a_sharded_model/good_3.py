import copy

from torch.distributed.fsdp import fully_shard

ema = copy.deepcopy(model)
fully_shard(model)
fully_shard(ema)
