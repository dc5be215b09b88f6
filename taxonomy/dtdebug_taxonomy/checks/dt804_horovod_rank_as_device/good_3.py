import horovod.torch as hvd
import torch

hvd.init()
torch.cuda.set_device(hvd.rank() % torch.cuda.device_count())
torch.manual_seed(hvd.rank())
rank = hvd.rank()
torch.cuda.set_device(rank % hvd.local_size())
