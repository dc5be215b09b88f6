import torch.distributed as dist
from accelerate import Accelerator

accelerator = Accelerator()


def main(build, loader):
    model, loader = accelerator.prepare(build(), loader)
    accelerator.wait_for_everyone()
    for batch in loader:
        accelerator.backward(model(batch))
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()
