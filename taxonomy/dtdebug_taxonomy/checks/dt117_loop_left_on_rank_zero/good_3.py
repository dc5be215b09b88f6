import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
for step, batch in enumerate(loader):
    model(batch).backward()
    optimizer.step()
    if step > 1000:
        if dist.get_rank() == 0:
            print("done")
        break
