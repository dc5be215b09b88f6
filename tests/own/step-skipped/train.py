import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Samples(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        x = torch.full((4,), float(i))
        if i == 13:
            x[0] = float("nan")
        return x, x.sum()


def train_epoch(model, loader, opt):
    skipped = 0
    for x, y in loader:
        if torch.isnan(x).any():
            skipped += 1
            continue
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(x / 64).squeeze(1), y / 64)
        loss.backward()
        opt.step()
    return skipped


def main():
    dist.init_process_group("gloo")
    data = Samples()
    sampler = DistributedSampler(data, shuffle=False)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    model = DDP(nn.Linear(4, 1))
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        train_epoch(model, loader, opt)
        dist.barrier()


if __name__ == "__main__":
    main()
