import torch.distributed as dist
from torch.utils.data import random_split

dist.init_process_group("gloo")
dataset = list(range(1000))
parts = [None]
if dist.get_rank() == 0:
    train, test = random_split(dataset, [900, 100])
    parts = [(train.indices, test.indices)]
dist.broadcast_object_list(parts, src=0)
