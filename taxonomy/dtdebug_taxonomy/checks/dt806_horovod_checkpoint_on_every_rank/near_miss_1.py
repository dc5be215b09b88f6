import sys

import horovod.torch as hvd
import torch

hvd.init()
model = torch.nn.Linear(2, 1)
history = {"loss": [1.0]}
image = model.weight
image.save = print
image.save("picture.png")
if hvd.rank() != 0:
    sys.exit()
torch.save(model, "model.pt")
