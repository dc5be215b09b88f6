from accelerate import Accelerator

accelerator = Accelerator()
for batch in loader:
    token_loss = model(batch)
    loss = (token_loss * batch.response_mask).sum() / batch.response_mask.sum().clamp(min=1)  # dt: DT520
    accelerator.backward(loss)
