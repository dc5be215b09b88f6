from torch.distributed import get_rank, reduce
from torch.utils.tensorboard import SummaryWriter


def validate(acc1, epoch, writer: SummaryWriter):
    reduce(acc1, 0)  # dt: DT406
    if get_rank() == 0:
        writer.add_scalar("val/acc1", acc1.item(), epoch)
