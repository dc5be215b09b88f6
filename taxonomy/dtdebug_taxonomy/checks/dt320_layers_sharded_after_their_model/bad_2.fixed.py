from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


def shard(model, mesh):
    policy = MixedPrecisionPolicy()
    for index, block in enumerate(model.blocks):
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)  # dt: DT320
    return model
