from accelerate import Accelerator


def train(model, optimizer, loader):
    accelerator = Accelerator(gradient_accumulation_steps=1)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        accelerator.backward(model(batch))
        optimizer.step()
        optimizer.zero_grad()
