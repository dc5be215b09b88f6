from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs


def main(model, loader):
    ddp_kwargs = DistributedDataParallelKwargs(find_unused_parameters=True)  # dt: DT838
    accelerator = Accelerator(mixed_precision="bf16")
    return accelerator.prepare(model, loader)
