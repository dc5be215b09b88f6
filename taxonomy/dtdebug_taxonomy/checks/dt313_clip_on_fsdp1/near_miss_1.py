import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy

model = FSDP(torch.nn.Linear(2, 2), sharding_strategy=ShardingStrategy.NO_SHARD)
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
critic = torch.nn.Linear(2, 2)
torch.nn.utils.clip_grad_norm_(critic.parameters(), 1.0)
sharded = FSDP(torch.nn.Linear(2, 2))
torch.nn.utils.clip_grad_value_(sharded.parameters(), 1.0)
