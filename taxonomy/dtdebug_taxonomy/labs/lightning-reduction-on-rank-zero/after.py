"""Trains with Lightning and logs a mean over all ranks."""

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset


class Net(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Linear(8, 1)

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        loss = self.body(batch[0]).square().mean()
        mean = self.all_gather(loss.detach()).mean()
        if self.global_rank == 0:
            if index == 3:
                print(f"mean loss over the ranks {mean:.3f}", flush=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), 0.1)


if __name__ == "__main__":
    data = DataLoader(TensorDataset(torch.randn(32, 8)), batch_size=4)
    trainer = L.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_epochs=1, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(Net(), data)
