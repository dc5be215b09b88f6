import accelerate
import torch.nn.functional as F


class Trainer:
    def __init__(self, model, optimizer, loader):
        self.accelerator = accelerate.Accelerator(gradient_accumulation_steps=4)
        self.model, self.optimizer, self.loader = self.accelerator.prepare(model, optimizer, loader)

    def compute_loss(self, x, y):
        return F.cross_entropy(self.model(x), y)

    def train(self):
        for x, y in self.loader:
            with self.accelerator.accumulate(self.model):
                loss = self.compute_loss(x, y)
                loss.backward(retain_graph=True)  # dt: DT821
                self.optimizer.step()
