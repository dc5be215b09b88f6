from torch.distributed.fsdp import fully_shard

fully_shard(model)  # dt: DT320
for layer in model.layers:
    fully_shard(layer)
optimizer = make(model)
