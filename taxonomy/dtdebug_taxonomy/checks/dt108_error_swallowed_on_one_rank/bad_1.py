import torch
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net.cuda(), device_ids=[local_rank])
for inputs, targets in loader:
    try:
        loss = criterion(model(inputs), targets)
        loss.backward()
    except RuntimeError as error:  # dt: DT108
        if "out of memory" in str(error):
            print("out of memory, batch skipped")
            torch.cuda.empty_cache()
            optimizer.zero_grad()
            continue
        raise
    optimizer.step()
