from accelerate import Accelerator

from project import options

model, optimizer, loader = options.parts()
accelerator = Accelerator() if options.accelerated else None
if accelerator is not None:
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

for batch in loader:
    loss = model(batch)
    if accelerator is not None:
        accelerator.backward(loss)
    else:
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
