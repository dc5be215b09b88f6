from torch.nn.parallel import DistributedDataParallel

from nets import Net


def main(rank):
    net = Net().cuda(rank)
    ddp = DistributedDataParallel(net, device_ids=[rank])
    net.encoder.requires_grad_(False)  # dt: DT306
    ddp.module.head.weight.requires_grad = False  # dt: DT306
    return ddp
