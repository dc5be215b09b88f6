import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

accelerator = Accelerator()
set_seed(42, device_specific=True)
for latents in loader:
    noise = torch.randn_like(latents)
    accelerator.backward((model(latents + noise) - noise).pow(2).mean())
