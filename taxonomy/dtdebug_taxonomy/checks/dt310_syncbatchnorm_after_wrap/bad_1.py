import torch
from torch.nn.parallel import DistributedDataParallel as DDP

model = torch.nn.BatchNorm2d(3).cuda()
model = DDP(model, device_ids=[0])
model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)  # dt: DT310
