from accelerate import Accelerator


def fit(model, optimizer, loader):
    accelerator = Accelerator()
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    inner = accelerator.unwrap_model(model)
    for batch in loader:
        embedded = inner.embed(batch)
        accelerator.backward(model(inputs_embeds=embedded).loss)
        optimizer.step()
        optimizer.zero_grad()
