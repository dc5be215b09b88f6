from torch.utils.data import DataLoader, RandomSampler
from transformers import Trainer


class Repeatable(Trainer):
    def get_train_dataloader(self):
        return self.accelerator.prepare(DataLoader(  # dt: DT837
            self.train_dataset,
            batch_size=self.args.train_batch_size,
            sampler=RandomSampler(self.train_dataset, generator=self.generator),
            collate_fn=self.data_collator,
        ))
