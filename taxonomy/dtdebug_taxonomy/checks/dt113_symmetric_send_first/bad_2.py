from torch.distributed import get_rank, get_world_size, recv, send


class Ring:
    def __init__(self):
        self.rank, self.size = get_rank(), get_world_size()

    def shift(self, x, out):
        send(x, (self.rank + 1) % self.size)  # dt: DT113
        recv(out, (self.rank - 1) % self.size)
        return out
