import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
for batch in loader:
    model(batch).backward()
    optimizer.step()
    if dist.get_rank() == 0:
        for name, value in metrics.items():
            if name == "loss":
                print(value)
                break
