import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler


def evaluate(model, loader):
    losses = [model(x).mean().item() for x in loader]
    mean = torch.tensor(sum(losses) / len(losses)).cuda()
    dist.all_reduce(mean)
    return mean.item() / dist.get_world_size()


def main(model, data, held_out, patience):
    dist.init_process_group("nccl")
    model = DistributedDataParallel(model.cuda())
    loader = torch.utils.data.DataLoader(data, sampler=DistributedSampler(data))
    best, bad = float("inf"), 0
    for _ in range(100):
        for x in loader:
            model(x).mean().backward()
        loss = evaluate(model, held_out)
        if loss < best:
            best, bad = loss, 0
        else:
            bad += 1
        if loss > 2 * best and bad > patience:
            break
    dist.destroy_process_group()
