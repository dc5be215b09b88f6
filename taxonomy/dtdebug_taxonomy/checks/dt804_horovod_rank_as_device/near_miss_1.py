import horovod.torch as hvd
import torch

hvd.init()
rank = hvd.local_rank()
torch.cuda.set_device(rank)
rank = hvd.rank()
sampler = torch.utils.data.DistributedSampler([1], num_replicas=hvd.size(), rank=rank)
name = "model-" + str(hvd.rank())
devices_by_rank = {hvd.rank(): "cuda"}
