import torch


class Trainer:
    def __init__(self, accelerator, model, folder):
        self.is_main, self.model, self.folder = accelerator.is_main_process, model, folder

    def save(self, path):
        torch.save(self.model.state_dict(), path)

    def forward(self, steps):
        for step in range(steps):
            if self.is_main and step % 100 == 0:
                self.save(self.folder / f"{step}.pt")


class OfOneProcess:
    def save(self, path):
        torch.save(self.model.state_dict(), path)

    def train(self, epochs):
        for epoch in range(epochs):
            self.save(self.folder / f"epoch_{epoch}.pt")
