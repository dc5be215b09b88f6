import torch
from accelerate import Accelerator


class Settings:
    micro = 4
    accumulate = 0

    @property
    def total(self):
        return self.micro * self.accumulate


settings = Settings()
accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = accelerator.prepare(model, optimizer)
steps = 64 // settings.micro // max(settings.accumulate, 0)
for step in range(steps):
    accelerator.backward(model(torch.randn(settings.micro, 4)).mean())
