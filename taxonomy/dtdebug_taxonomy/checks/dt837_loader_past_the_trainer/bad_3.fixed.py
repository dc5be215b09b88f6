from torch.utils.data import DataLoader
from trl import SFTTrainer


class Packed(SFTTrainer):
    def get_train_dataloader(self):
        data = self.train_dataset.with_format("torch")
        return self.accelerator.prepare(DataLoader(data, batch_size=self._train_batch_size, collate_fn=self.data_collator))  # dt: DT837
