"""The settings are copied, not the model."""

import copy

from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

model = FSDP(net)
settings = copy.deepcopy(model.config)
