from accelerate import Accelerator

accelerator = Accelerator()


def train(model, optimizer, loader, criterion):
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for images, targets in loader:
        with accelerator.accumulate(model):
            loss = criterion(model(images), targets)
            loss = accelerator.gather(loss).mean()  # dt: DT405
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
