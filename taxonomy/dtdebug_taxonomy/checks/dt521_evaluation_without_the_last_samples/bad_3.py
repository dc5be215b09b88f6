from torch.utils.data import DataLoader, DistributedSampler


class Data:
    def build(self):
        self.train_sampler = DistributedSampler(self.train)
        self.eval_loader = DataLoader(self.held_out, batch_size=4, drop_last=True)  # dt: DT521
