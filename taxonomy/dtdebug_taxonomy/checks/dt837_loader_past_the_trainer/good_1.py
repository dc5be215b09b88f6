from torch.utils.data import DataLoader
from transformers import Trainer


class Own(Trainer):
    def get_train_dataloader(self):
        return self.accelerator.prepare(DataLoader(self.train_dataset, batch_size=8, shuffle=True))
