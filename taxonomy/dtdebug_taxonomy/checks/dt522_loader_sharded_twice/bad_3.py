from accelerate import Accelerator
from torch.utils.data import DataLoader, DistributedSampler


class Trainer:
    def __init__(self, data):
        self.accelerator = Accelerator()
        sampler = DistributedSampler(data)
        self.loader = DataLoader(data, sampler=sampler)
        self.loader = self.accelerator.prepare_data_loader(self.loader)  # dt: DT522
