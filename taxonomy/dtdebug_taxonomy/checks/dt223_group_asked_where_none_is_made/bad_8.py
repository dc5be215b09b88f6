import torch.distributed as dist
from accelerate import Accelerator

accelerator = Accelerator()


def main(build, loader):
    model, loader = accelerator.prepare(build(), loader)
    dist.barrier()  # dt: DT223
    for batch in loader:
        accelerator.backward(model(batch))
    dist.barrier()
    dist.destroy_process_group()
