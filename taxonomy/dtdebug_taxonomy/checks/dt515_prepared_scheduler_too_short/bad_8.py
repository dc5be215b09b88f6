from accelerate import Accelerator
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR


def train(config, model, optimizer, loader):
    accelerator = Accelerator()
    warmup = LinearLR(optimizer, 0.01, total_iters=config.warmup)  # dt: DT515
    cosine = CosineAnnealingLR(optimizer, T_max=config.steps - config.warmup)  # dt: DT515
    schedule = SequentialLR(optimizer, [warmup, cosine], milestones=[config.warmup])
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    for batch in loader:
        accelerator.backward(model(batch))
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
