from torch.utils.tensorboard import SummaryWriter


def train(loader, rank):
    writer = None
    if rank == 0:
        writer = SummaryWriter("runs")
    for step, loss in enumerate(loader):
        if writer is not None:
            writer.add_scalar("loss", loss, step)
