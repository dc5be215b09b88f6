from torch.distributed.fsdp import fully_shard

fully_shard(model)
fully_shard(teacher)
