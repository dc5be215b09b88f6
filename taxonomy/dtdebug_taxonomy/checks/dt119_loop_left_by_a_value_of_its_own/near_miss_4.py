"""How many losses a list holds is the same on all ranks, and a number in a path is no data."""

from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def main(model, train_set, opt, path):
    model = DDP(model)
    loader = DataLoader(train_set, sampler=DistributedSampler(train_set))
    last = int(path.split("-")[-1])
    recent = []
    for step, batch in enumerate(loader):
        if step > last:
            break
        opt.zero_grad()
        loss = model(batch).mean()
        loss.backward()
        opt.step()
        recent.append(loss.item())
        if len(recent) >= 100:
            break
