import os
import time

from torch.utils.data.distributed import DistributedSampler as DS


class Curriculum(DS):
    pass


class Data:
    def __init__(self, dataset):
        self.seed = int(os.environ["RANK"])
        self.a = DS(dataset, 8, self.seed, True, self.seed)  # dt: DT504
        self.b = Curriculum(dataset)  # dt: DT504
