from torch.nn import SyncBatchNorm
from torch.nn.parallel import DistributedDataParallel


def build(net):
    ddp = DistributedDataParallel(net)
    SyncBatchNorm.convert_sync_batchnorm(ddp.module)  # dt: DT310
    return ddp
