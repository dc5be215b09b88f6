import transformers
from torch.utils.data import DataLoader


class Plain(transformers.Seq2SeqTrainer):
    def get_train_dataloader(self) -> DataLoader:
        loader = DataLoader(self.train_dataset, batch_size=8, shuffle=True, num_workers=4)  # dt: DT837
        return loader
