import torch.distributed as dist

if __name__ == "__main__":
    dist.init_process_group("nccl")
    from datasets import load_dataset

    print(load_dataset("mine").map(len))
