import horovod.torch as hvd
import torch

hvd.init()
model = torch.nn.Linear(2, 1)
model(torch.ones(1, 2)).backward()
for p in model.parameters():
    hvd.allreduce_(p.grad)
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
