from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, net):
    ddp = DDP(net)
    ddp(images)
    if rank == 0:
        net(images)
    copy = ddp.module
    if rank == 0:
        copy(images)
