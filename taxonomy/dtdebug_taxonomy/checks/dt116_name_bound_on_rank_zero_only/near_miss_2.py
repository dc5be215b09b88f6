from torch.utils.tensorboard import SummaryWriter


def train(loader, rank, log):
    if log and rank == 0:
        writer = SummaryWriter("runs")
    for step, loss in enumerate(loader):
        if log and step % 10 == 0 and rank == 0:
            writer.add_scalar("loss", loss, step)


def write(loader, is_main):
    if is_main:
        lines = [str(loss) for loss in loader]
        print(lines)
    lines = list(loader)
    return lines
