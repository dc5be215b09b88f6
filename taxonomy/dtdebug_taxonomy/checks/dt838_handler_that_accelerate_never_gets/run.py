from datetime import timedelta

from accelerate import Accelerator, InitProcessGroupKwargs, PartialState
from torch.distributed.distributed_c10d import _get_default_group

state = PartialState(cpu=True)
accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(hours=2))])
timeout = _get_default_group()._get_backend(accelerator.device).options._timeout
accelerator.print(f"the group waits {timeout}")
accelerator.end_training()
