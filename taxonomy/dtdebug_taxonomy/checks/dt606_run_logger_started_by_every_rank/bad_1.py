import torch.distributed as dist
import wandb

if __name__ == "__main__":
    dist.init_process_group("nccl")
    wandb.init(project="mine")  # dt: DT606
