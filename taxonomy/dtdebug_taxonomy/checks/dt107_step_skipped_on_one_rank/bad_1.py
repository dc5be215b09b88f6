import torch
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net.cuda(), device_ids=[local_rank])
for images, labels in loader:
    loss = criterion(model(images), labels)
    if torch.isnan(loss):  # dt: DT107
        print("skipped")
        continue
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
