from torch.utils.tensorboard import SummaryWriter


def train(loader, rank):
    if rank == 0:
        writer = SummaryWriter("runs")
    for step, loss in enumerate(loader):
        if rank == 0:
            writer.add_scalar("loss", loss, step)
