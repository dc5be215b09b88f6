from torch.utils.tensorboard import SummaryWriter


def train(loader, rank):
    if rank == 0:
        writer = SummaryWriter("runs")
    if rank != 0:
        return
    for step, loss in enumerate(loader):
        writer.add_scalar("loss", loss, step)
