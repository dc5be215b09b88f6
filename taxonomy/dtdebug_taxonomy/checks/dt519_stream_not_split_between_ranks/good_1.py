import torch.distributed as dist
from datasets import load_dataset
from datasets.distributed import split_dataset_by_node

dist.init_process_group("nccl")
ds = load_dataset("c4", "en", split="train", streaming=True)
ds = split_dataset_by_node(ds, rank=dist.get_rank(), world_size=dist.get_world_size())
for batch in ds:
    model(batch).loss.backward()
