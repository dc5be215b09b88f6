from torch.utils.data import DataLoader, DistributedSampler
from transformers import Trainer


class Own(Trainer):
    def get_train_dataloader(self):
        sampler = DistributedSampler(self.train_dataset)
        return DataLoader(self.train_dataset, batch_size=8, sampler=sampler)
