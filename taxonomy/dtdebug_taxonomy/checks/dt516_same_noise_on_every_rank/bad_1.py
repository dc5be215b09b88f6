import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

accelerator = Accelerator()
set_seed(42)
for latents in loader:
    noise = torch.randn_like(latents)  # dt: DT516
    steps = torch.randint(0, 1000, (len(latents),))
    loss = (model(latents + noise, steps) - noise).pow(2).mean()
    accelerator.backward(loss)
