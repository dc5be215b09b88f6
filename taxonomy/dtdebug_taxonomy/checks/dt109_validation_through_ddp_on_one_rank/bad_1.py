import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net.cuda(), device_ids=[local_rank])
for epoch in range(10):
    train_one_epoch(model)
    if dist.get_rank() == 0:
        model.eval()
        with torch.no_grad():
            for images, labels in val_loader:
                scores = model(images.cuda())  # dt: DT109
                loss = model.forward(images)  # dt: DT109
