from accelerate import Accelerator


def fit(model, vae, optimizer, loader):
    accelerator = Accelerator()
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    vae = accelerator.unwrap_model(vae)
    for batch in loader:
        accelerator.backward(model(vae(batch)).mean())
        optimizer.step()
        optimizer.zero_grad()
