import torch.distributed as dist
import wandb

if __name__ == "__main__":
    dist.init_process_group("nccl")
    wandb.init(project="mine", group="job 7", name=f"rank {dist.get_rank()}")
