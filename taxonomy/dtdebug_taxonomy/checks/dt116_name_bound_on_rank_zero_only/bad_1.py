import torch.distributed as dist
from torch.utils.tensorboard import SummaryWriter


def train(loader, rank):
    if rank == 0:
        writer = SummaryWriter("runs")
    for step, loss in enumerate(loader):
        writer.add_scalar("loss", loss, step)  # dt: DT116
    dist.barrier()
