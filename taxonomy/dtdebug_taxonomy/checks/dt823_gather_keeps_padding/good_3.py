from accelerate import Accelerator

accelerator = Accelerator()
model, train_loader = accelerator.prepare(None, [])
losses = []
for batch in train_loader:
    outputs = model(batch)
    accelerator.backward(outputs.loss)
    losses.append(accelerator.gather(outputs.loss.detach()))
