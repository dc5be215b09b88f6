"""What is prepared is a mapping of models, which `prepare()` gives back as it is."""

from accelerate import Accelerator

accelerator = Accelerator()
model = build_models()
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for batch in loader:
    hidden = model.text_encoder(batch)
    accelerator.backward(model.decoder(hidden).mean())
    optimizer.step()
print({key: model[key].state_dict() for key in model})
