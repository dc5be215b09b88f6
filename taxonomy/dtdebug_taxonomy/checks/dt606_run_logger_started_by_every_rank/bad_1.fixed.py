import torch.distributed as dist
import wandb

if __name__ == "__main__":
    dist.init_process_group("nccl")
    wandb.init(project="mine", mode=None if dist.get_rank() == 0 else "disabled")  # dt: DT606
