import torch
from accelerate import Accelerator

accelerator = Accelerator()
device = accelerator.device
x = torch.ones(1, 2).to(device).to(torch.float16).to("cpu")
