import torch
from accelerate import Accelerator


def move(x, device, local_rank):
    accelerator = Accelerator(cpu=True)
    print(accelerator.device, torch.cuda.is_available())
    return x.to(device).cuda(local_rank)
