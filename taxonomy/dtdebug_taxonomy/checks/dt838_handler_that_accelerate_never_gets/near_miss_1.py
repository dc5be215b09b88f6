from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs

ddp_kwargs = DistributedDataParallelKwargs(find_unused_parameters=True)


def main(model):
    return Accelerator(kwargs_handlers=[ddp_kwargs]).prepare(model)
