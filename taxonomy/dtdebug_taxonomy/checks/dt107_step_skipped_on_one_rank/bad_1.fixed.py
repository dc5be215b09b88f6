import torch.distributed
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net.cuda(), device_ids=[local_rank])
for images, labels in loader:
    loss = criterion(model(images), labels)
    skip = torch.tensor(float(torch.isnan(loss)), device=loss.device)
    torch.distributed.all_reduce(skip, op=torch.distributed.ReduceOp.MAX)
    if skip:  # dt: DT107
        print("skipped")
        continue
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
