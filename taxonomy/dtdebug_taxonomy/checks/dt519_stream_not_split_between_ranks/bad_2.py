import datasets
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard


def main():
    dist.init_process_group("nccl")
    fully_shard(model)
    stream = datasets.load_dataset("text", data_files=files, streaming=True)  # dt: DT519
    for row in stream["train"]:
        loss = model(row)
        loss.backward()
