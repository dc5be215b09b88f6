import torch
from torch.optim.lr_scheduler import LambdaLR


def schedule(total, warmup):
    def factor(step):
        if step < warmup:
            return step / warmup
        return (total - step) / (total - warmup)

    return factor


def build(model, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return optimizer, LambdaLR(optimizer, schedule(steps, warmup=10))


STEPS = 10
model = torch.nn.Linear(2, 2)
optimizer, scheduler = build(model, STEPS)
for _ in range(STEPS + 1):
    optimizer.step()
    scheduler.step()
