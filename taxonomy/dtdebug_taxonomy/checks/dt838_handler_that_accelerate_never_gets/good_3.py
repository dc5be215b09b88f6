from accelerate import Accelerator
from accelerate.utils import FullyShardedDataParallelPlugin


def plugin(offload):
    return FullyShardedDataParallelPlugin(cpu_offload=offload)


accelerator = Accelerator(fsdp_plugin=plugin(False))
