import threading

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)


def report():
    dist.all_reduce(total)
    print(total)


threading.Thread(target=report).start()  # dt: DT413
for batch in loader:
    model(batch).mean().backward()
