from accelerate import Accelerator


def main(model, optimizer, loader, criterion):
    accelerator = Accelerator()
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for x, y in loader:
        loss = criterion(model(x), y)
        with accelerator.no_sync(model):  # dt: DT314
            accelerator.backward(loss)
