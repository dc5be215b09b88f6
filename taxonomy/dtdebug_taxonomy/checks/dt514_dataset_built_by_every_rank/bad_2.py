import torch.distributed as dist
from datasets import Dataset

if __name__ == "__main__":
    dist.init_process_group("nccl")
    data = Dataset.from_generator(range, cache_dir="cache")  # dt: DT514
