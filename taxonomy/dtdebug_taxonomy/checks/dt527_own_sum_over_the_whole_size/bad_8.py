import torch.distributed as dist


class Mean:
    def __init__(self, device):
        self.total = torch.zeros(1, device=device)
        self.count = 0

    def add(self, value, n):
        self.total += value * n
        self.count += n

    def result(self):
        dist.all_reduce(self.total)
        return (self.total / self.count).item()  # dt: DT527
