from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from data import make


def main(opt):
    for phase, row in opt["datasets"].items():
        if phase == "train":
            train_set = make(row)
            train_sampler = DistributedSampler(train_set, shuffle=row["shuffle"], drop_last=True)  # dt: DT502
            train_loader = DataLoader(train_set, sampler=train_sampler)
    for epoch in range(1000000):
        if train_sampler is not None:
            train_sampler.set_epoch(epoch)
        for x in train_loader:
            print(x)
