"""Trains with Accelerate and looks at one layer."""

import torch
from accelerate import Accelerator


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))


accelerator = Accelerator(cpu=True)
net = Net()
net, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), 0.1))
for _ in range(3):
    loss = net(torch.randn(4, 8)).square().mean()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
norm = accelerator.unwrap_model(net).head.weight.norm()
accelerator.print(f"norm of the head after 3 steps: {norm:.3f}")
accelerator.end_training()
