import horovod.torch as hvd
import torch

hvd.init()
torch.cuda.set_device(hvd.local_rank())  # dt: DT804
model = torch.nn.Linear(2, 1).cuda()
