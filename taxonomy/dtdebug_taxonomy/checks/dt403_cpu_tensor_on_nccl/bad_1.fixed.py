import torch
import torch.distributed as dist


def main(local_rank):
    dist.init_process_group("nccl")
    torch.cuda.set_device(local_rank)
    num_samples = 12
    dist.broadcast(torch.tensor([num_samples], device="cuda"), 0)  # dt: DT403
