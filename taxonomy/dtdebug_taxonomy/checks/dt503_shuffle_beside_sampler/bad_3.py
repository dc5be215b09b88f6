from torch.utils import data as td


class Module:
    def __init__(self, ds, weights):
        self.ds = ds
        self.sampler = td.WeightedRandomSampler(weights, len(weights))

    def train_dataloader(self):
        return td.DataLoader(self.ds, 16, True, self.sampler)  # dt: DT503

    def batches(self):
        grouped = td.BatchSampler(self.sampler, 8, drop_last=True)
        return td.DataLoader(self.ds, batch_sampler=grouped, shuffle=True)  # dt: DT503
