import horovod.torch as hvd
import torch

hvd.init()
torch.cuda.set_device(hvd.local_rank())
if hvd.rank() == 0:
    print("rank", hvd.rank())
