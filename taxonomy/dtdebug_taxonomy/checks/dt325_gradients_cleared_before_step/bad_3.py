from accelerate import Accelerator


def train(model, loader, optimizer):
    accelerator = Accelerator()
    model, loader, optimizer = accelerator.prepare(model, loader, optimizer)
    for batch in loader:
        loss = model(**batch).loss
        accelerator.backward(loss)
        optimizer.zero_grad()  # dt: DT325
        optimizer.step()
