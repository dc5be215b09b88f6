from accelerate import Accelerator

accelerator = Accelerator()


def train(model, optimizer, loader, criterion):
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for images, targets in loader:
        loss = criterion(model(images), targets)
        shown = accelerator.gather(loss).mean()
        accelerator.backward(loss)
        loss = accelerator.gather(loss)
        optimizer.step()
        optimizer.zero_grad()
        accelerator.print(shown, loss)
