from torch.utils.data import DataLoader


class Trainer:
    def get_train_dataloader(self):
        return DataLoader(self.train_dataset, batch_size=8, shuffle=True)
