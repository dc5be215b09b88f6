import torch.distributed.fsdp as fsdp


def shard(net):
    fsdp.fully_shard(net.head)
    fsdp.fully_shard(net)  # dt: DT320
    return net
