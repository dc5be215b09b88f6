import os

import torch

if int(os.environ["RANK"]) == 0:  # dt: DT207
    print("main process")
model = torch.nn.Linear(2, 2)
if int(os.getenv("WORLD_SIZE", 1)) > 1:  # dt: DT207
    model = torch.nn.parallel.DistributedDataParallel(model)
