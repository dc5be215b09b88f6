import os
import torch

os.environ["MASTER_PORT"] = "29500"
os.environ["WORLD_SIZE"] = str(torch.cuda.device_count())
os.environ["RANK"] = f"{0}"
os.environ.setdefault("LOCAL_RANK", "0")
