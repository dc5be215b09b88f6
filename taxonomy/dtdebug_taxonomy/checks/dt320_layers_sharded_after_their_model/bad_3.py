import torch.distributed.fsdp as fsdp


def shard(net):
    fsdp.fully_shard(net)  # dt: DT320
    fsdp.fully_shard(net.head)
    return net
