from accelerate import Accelerator
from accelerate.utils import DistributedType

accelerator = Accelerator()
if accelerator.is_main_process or accelerator.distributed_type == DistributedType.DEEPSPEED:
    if step % 500 == 0:
        accelerator.save_state("out")
