from copy import deepcopy

from torch.distributed.fsdp import fully_shard

for layer in model.layers:
    fully_shard(layer)
fully_shard(model)
reference = deepcopy(model)  # dt: DT319
