from torch.nn import BatchNorm3d, Conv3d, Sequential
from torch.nn.parallel import DistributedDataParallel

for rank in range(1):
    net = DistributedDataParallel(  # dt: DT309
        Sequential(Conv3d(1, 1, 1), BatchNorm3d(1)).cuda(),
    )
