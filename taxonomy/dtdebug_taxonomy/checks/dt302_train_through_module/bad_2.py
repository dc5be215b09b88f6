import torch
from torch.cuda.amp import GradScaler


class Trainer:
    def __init__(self, model, rank):
        self.scaler = GradScaler()
        self.model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])

    def step(self, batch):
        with torch.autocast("cuda"):
            logits, aux = self.model.module.forward(batch["x"])  # dt: DT302
            loss = torch.nn.functional.cross_entropy(logits, batch["y"])
            total = loss + 0.1 * aux
        self.scaler.scale(total).backward()
