import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.tensorboard import SummaryWriter


def main(model, local_rank):
    model = DDP(model, device_ids=[local_rank])
    writer = SummaryWriter("runs/mine")  # dt: DT606
    writer.add_scalar("loss", 0.0)


if __name__ == "__main__":
    main(torch.nn.Linear(1, 1), 0)
