from accelerate import Accelerator


def fit(model, optimizer, loader):
    accelerator = Accelerator(mixed_precision="bf16")
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        loss = accelerator.unwrap_model(model)(**batch).loss  # dt: DT836
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
