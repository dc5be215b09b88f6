import os
from dataclasses import asdict, dataclass

import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


@dataclass
class TrainerConfig:
    max_epochs: int = 2
    batch_size: int = 16
    data_loader_workers: int = 1
    grad_norm_clip: float = 1.0
    snapshot_path: str = "gpt_snapshot.pt"
    save_every: int = 1


@dataclass
class Snapshot:
    model_state: dict
    optimizer_state: dict
    finished_epoch: int


class Trainer:
    def __init__(self, config, model, optimizer, train_dataset, test_dataset):
        self.config = config
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.global_rank = int(os.environ["RANK"])
        self.train_loader = self._prepare_dataloader(train_dataset)
        self.test_loader = self._prepare_dataloader(test_dataset)
        self.model = model
        self.optimizer = optimizer
        self.epochs_run = 0
        self._load_snapshot()
        self.model = DDP(self.model)

    def _prepare_dataloader(self, dataset):
        return DataLoader(
            dataset,
            batch_size=self.config.batch_size,
            num_workers=self.config.data_loader_workers,
            sampler=DistributedSampler(dataset),
        )

    def _load_snapshot(self):
        if not os.path.exists(self.config.snapshot_path):
            return
        snapshot = Snapshot(**torch.load(self.config.snapshot_path, weights_only=False))
        self.model.load_state_dict(snapshot.model_state)
        self.optimizer.load_state_dict(snapshot.optimizer_state)
        self.epochs_run = snapshot.finished_epoch

    def _run_batch(self, source, targets, train=True):
        with torch.set_grad_enabled(train):
            _, loss = self.model(source, targets)
        if train:
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.grad_norm_clip)
            self.optimizer.step()
        return loss.item()

    def _run_epoch(self, epoch, loader, train=True):
        loader.sampler.set_epoch(epoch)
        for it, (source, targets) in enumerate(loader):
            kind = "Train" if train else "Eval"
            batch_loss = self._run_batch(source, targets, train)
            if it % 2 == 0:
                print(f"[RANK{self.global_rank}] Epoch {epoch} | Iter {it} | {kind} Loss {batch_loss:.5f}", flush=True)

    def _save_snapshot(self, epoch):
        model = self.model.module
        snapshot = Snapshot(model.state_dict(), self.optimizer.state_dict(), epoch)
        torch.save(asdict(snapshot), self.config.snapshot_path)
        print(f"Snapshot saved at epoch {epoch}", flush=True)

    def train(self):
        for epoch in range(self.epochs_run, self.config.max_epochs):
            self._run_epoch(epoch, self.train_loader)
            if self.global_rank == 0 and epoch % self.config.save_every == 0:
                self._save_snapshot(epoch)
            self._run_epoch(epoch, self.test_loader, train=False)
