from accelerate import Accelerator

accelerator = Accelerator()


def fit(model, optimizer, loader, criterion):
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    inner = accelerator.unwrap_model(model)
    for images, labels in loader:
        logits = inner(images)  # dt: DT836
        accelerator.backward(criterion(logits, labels))
        optimizer.step()
        optimizer.zero_grad()
