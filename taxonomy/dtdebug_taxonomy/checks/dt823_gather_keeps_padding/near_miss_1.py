import torch
from accelerate import Accelerator

accelerator = Accelerator()
table = torch.zeros(3, 3)
for labels in [torch.tensor([[0]])]:
    picked = table.gather(1, labels)
total = accelerator.gather(picked.sum())
for batch in accelerator.prepare([]):
    losses = accelerator.gather(batch["loss"].repeat(4))
