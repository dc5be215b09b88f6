from contextlib import nullcontext

from colossalai.booster import Booster

booster = Booster()
model, optimizer, criterion, loader, _ = booster.boost(net, optim, loss_of, data)
for step, (x, y) in enumerate(loader):
    loss = criterion(model(x), y)
    with booster.no_sync(model, optimizer) if (step + 1) % 4 else nullcontext():  # ZeRO decides in the backward pass
        booster.backward(loss / 4, optimizer)
        loss.backward()
    if (step + 1) % 4 == 0:
        optimizer.step()
