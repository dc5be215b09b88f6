from torch.distributed import get_rank
import random as rnd

from torch.distributed import init_process_group
from torch.nn.parallel import DistributedDataParallel


class Flip:
    def __init__(self, data):
        self.data = data

    def __getitem__(self, i):
        x = self.data[i]
        return x[::-1] if rnd.random() < 0.5 else x


if __name__ == "__main__":
    init_process_group("gloo")
    rnd.seed(42 + get_rank())  # dt: DT508
    model = DistributedDataParallel(None)
    data = Flip([[1, 2], [3, 4]])
