import torch.distributed as dist


class Buckets:
    def __init__(self):
        self.pending = []

    def push(self, grad):
        self.pending.append(dist.all_reduce(grad, async_op=True))

    def start(self, grad):
        return dist.all_reduce(grad, async_op=True)

    def flush(self):
        for p in self.pending:
            p.wait()
