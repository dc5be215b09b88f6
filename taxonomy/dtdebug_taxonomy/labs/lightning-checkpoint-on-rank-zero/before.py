"""Trains with Lightning and saves a checkpoint at the end."""

import tempfile
from pathlib import Path

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset


class Net(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Linear(8, 1)

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        return self.body(batch[0]).square().mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), 0.1)


if __name__ == "__main__":
    data = DataLoader(TensorDataset(torch.randn(32, 8)), batch_size=4)
    trainer = L.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_epochs=1, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(Net(), data)
    with tempfile.TemporaryDirectory() as folder:
        if trainer.is_global_zero:
            trainer.save_checkpoint(Path(folder) / "last.ckpt")
        seen = trainer.strategy.reduce(torch.tensor(1.0), reduce_op="sum")
    if trainer.is_global_zero:
        print(f"saved after {seen:.0f} ranks have trained", flush=True)
