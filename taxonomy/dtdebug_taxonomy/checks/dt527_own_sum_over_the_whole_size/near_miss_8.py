import torch.distributed as dist


class Mean:
    def __init__(self, device):
        self.total, self.count = torch.zeros(1, device=device), torch.zeros(1, device=device)

    def add(self, value, n):
        self.total += value * n
        self.count += n

    def result(self):
        dist.all_reduce(self.total)
        dist.all_reduce(self.count)
        return (self.total / self.count).item()


def mean_over_batches(losses):
    total, seen = torch.zeros(1), 0
    for loss in losses:
        total += loss
        seen += 1
    dist.all_reduce(total)
    return total / seen / dist.get_world_size()
