import torch
from accelerate import Accelerator

accelerator = Accelerator()
net, loader = accelerator.prepare(net, loader)
if accelerator.is_main_process:
    torch.save({"model": net.state_dict()}, "model.pt")  # dt: DT303
