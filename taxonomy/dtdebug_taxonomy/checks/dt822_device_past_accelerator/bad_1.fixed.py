import torch
from accelerate import Accelerator

accelerator = Accelerator()
model = accelerator.prepare(torch.nn.Linear(2, 1))
x = torch.ones(1, 2).to(accelerator.device)  # dt: DT822
print(model(x), model(torch.zeros(1, 2).to(accelerator.device)))  # dt: DT822
