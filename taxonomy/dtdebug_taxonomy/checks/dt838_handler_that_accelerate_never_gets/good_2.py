from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs

handlers = [DistributedDataParallelKwargs(find_unused_parameters=True)]
accelerator = Accelerator(kwargs_handlers=handlers)
