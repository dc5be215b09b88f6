import os

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
model = torch.nn.Linear(2, 2)
scripted = torch.jit.script(model)
if dist.get_rank() == 0:
    scripted.save(os.path.join("out", "model.zip"))  # dt: DT605
    os.symlink("model.zip", "latest")  # dt: DT605
if dist.get_rank() == 0:
    print(model)
