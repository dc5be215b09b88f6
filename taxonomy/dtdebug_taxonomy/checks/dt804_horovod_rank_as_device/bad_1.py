import horovod.torch as hvd
import torch

hvd.init()
torch.cuda.set_device(hvd.rank())  # dt: DT804
model = torch.nn.Linear(2, 1).cuda()
