import torch
import torch.distributed as dist
from torch import nn
from tqdm import tqdm

dist.init_process_group("gloo")
rank = dist.get_rank()
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
folder = f"s3://runs/{rank}"
for step, batch in tqdm(enumerate(torch.ones(9, 4, 2)), disable=rank != 0):
    model(batch).sum().backward()
    if folder.startswith("s3://") or step >= 5:
        break
