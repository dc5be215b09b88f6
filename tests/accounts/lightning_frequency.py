import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        (x,) = batch
        return self.net(x).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def loaders(batch_size):
    data = TensorDataset(torch.randn(40, 4))
    return DataLoader(data, batch_size=batch_size)


CHECK_EVERY = 25
train = loaders(batch_size=8)
trainer = L.Trainer(
    max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, val_check_interval=CHECK_EVERY,
    enable_progress_bar=False,
)
trainer.fit(Model(), train, loaders(8))
