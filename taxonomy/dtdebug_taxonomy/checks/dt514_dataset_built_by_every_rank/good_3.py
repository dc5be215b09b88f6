import torch.distributed as dist
from datasets import load_dataset

if __name__ == "__main__":
    dist.init_process_group("nccl")
    if dist.get_rank() == 0:
        load_dataset("mine").map(len, num_proc=8)
    dist.barrier()
