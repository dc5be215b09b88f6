import os

import torch

name = os.environ["LOCAL_RANK"]
if name.isdecimal():
    name = int(name)
device = torch.device("cuda", name)
