import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


class Trainer:
    def __init__(self, model, every):
        self.model = FSDP(model)
        self.opt = torch.optim.AdamW(self.model.parameters())
        self.scaler = torch.amp.GradScaler()
        self.every = every

    def epoch(self, loader):
        for step, batch in enumerate(loader, 1):
            with torch.autocast("cuda"):
                loss = self.model(batch)
            self.scaler.scale(loss).backward()
            if step % self.every == 0:
                self.scaler.step(self.opt)
                self.opt.zero_grad(set_to_none=True)
                self.scaler.update()
