import torch.distributed as dist
import wandb

if __name__ == "__main__":
    dist.init_process_group("nccl")
    if dist.get_rank() == 0:
        wandb.init(project="mine")
