import os

import torch

os.environ["LOCAL_RANK"] = "1"
try:
    torch.device("cuda", os.environ["LOCAL_RANK"])
except TypeError as error:
    print("refused", error)
