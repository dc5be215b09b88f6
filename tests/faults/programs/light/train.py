import os
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore", category=UserWarning)


class RandomImages(Dataset):
    def __init__(self, length):
        generator = torch.Generator().manual_seed(5)
        self.data = torch.rand(length, 24, generator=generator)
        self.target = torch.randint(0, 4, (length,), generator=generator)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return self.data[index], self.target[index]


class LitClassifier(L.LightningModule):
    def __init__(self, hidden=16):
        super().__init__()
        self.l1 = torch.nn.Linear(24, hidden)
        self.l2 = torch.nn.Linear(hidden, 4)

    def forward(self, x):
        x = torch.relu(self.l1(x))
        return self.l2(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("val_loss", loss, sync_dist=True)

    def on_train_epoch_end(self):
        mean = self.all_gather(torch.tensor(float(self.current_epoch))).mean()
        self.print(f"epoch {int(mean)} of rank {self.global_rank} is done", flush=True)

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.05)
        return optimizer


def cli_main():
    L.seed_everything(42)
    world = int(os.environ["WORLD_SIZE"])
    train_loader = DataLoader(RandomImages(48 * world), batch_size=8)
    val_loader = DataLoader(RandomImages(16 * world), batch_size=8)
    model = LitClassifier()
    trainer = L.Trainer(
        accelerator="cpu",
        devices=world,
        strategy="ddp",
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=1,
    )
    trainer.fit(model, train_loader, val_loader)
    result = trainer.validate(model, val_loader, verbose=False)
    if trainer.is_global_zero:
        print("validated", result, flush=True)


if __name__ == "__main__":
    cli_main()
