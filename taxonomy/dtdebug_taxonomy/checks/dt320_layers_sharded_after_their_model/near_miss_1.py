"""The layers of another model follow."""

from torch.distributed.fsdp import fully_shard

fully_shard(generator)
for layer in critic.layers:
    fully_shard(layer)
fully_shard(critic)
