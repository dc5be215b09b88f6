from torch import nn

first, second = nn.BatchNorm1d(1), nn.BatchNorm1d(2)
ddp = nn.parallel.DistributedDataParallel(first)
second = nn.SyncBatchNorm.convert_sync_batchnorm(second)
