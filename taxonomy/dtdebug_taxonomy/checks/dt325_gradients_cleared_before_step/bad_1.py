import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.zero_grad(set_to_none=False)  # dt: DT325
    optimizer.step()
dist.destroy_process_group()
