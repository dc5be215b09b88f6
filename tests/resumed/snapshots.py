import copy, os, random, torch, torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

class EMA:
    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters()}
    def update(self, model):
        for n, p in model.named_parameters():
            self.shadow[n].mul_(self.decay).add_(p.detach(), alpha=1 - self.decay)

class Trainer:
    def __init__(self, path="snapshot.pt"):
        torch.manual_seed(5)
        self.path = path
        self.model = nn.Sequential(nn.Linear(6, 24), nn.GELU(), nn.Dropout(0.2), nn.Linear(24, 1))
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=3e-3)
        self.ema = EMA(self.model)
        self.global_step = 0
        self.epoch = 0
        self.data = TensorDataset(torch.randn(40, 6), torch.randn(40, 1))
        if os.path.exists(path):
            self.load()

    def save(self):
        torch.save({"model": self.model.state_dict(), "opt": self.opt.state_dict(), "ema": self.ema.shadow,
                    "global_step": self.global_step, "epoch": self.epoch + 1, "rng": torch.get_rng_state()}, self.path)

    def load(self):
        snap = torch.load(self.path)
        self.model.load_state_dict(snap["model"])
        self.opt.load_state_dict(snap["opt"])
        self.ema.shadow = snap["ema"]
        self.global_step = snap["global_step"]
        self.epoch = snap["epoch"]
        torch.set_rng_state(snap["rng"])

    def lr(self):
        return 3e-3 * min(1.0, (self.global_step + 1) / 50)

    def train(self, epochs=4):
        while self.epoch < epochs:
            for x, y in DataLoader(self.data, batch_size=10, shuffle=True):
                for g in self.opt.param_groups:
                    g["lr"] = self.lr()
                loss = (self.model(x) - y).pow(2).mean()
                loss.backward()
                self.opt.step()
                self.opt.zero_grad()
                self.ema.update(self.model)
                self.global_step += 1
            self.save()
            self.epoch += 1

if __name__ == "__main__":
    Trainer().train()
