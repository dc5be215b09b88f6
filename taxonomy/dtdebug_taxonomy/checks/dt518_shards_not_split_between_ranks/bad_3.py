import torch.distributed as dist
from webdataset import WebDataset

dist.init_process_group("nccl")
dataset = WebDataset("shards-{0000..0127}.tar")  # dt: DT518
