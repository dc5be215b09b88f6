"""The number is that of the launcher's DeepSpeed plug-in, which the Accelerator has as well."""

from accelerate import Accelerator

accelerator = Accelerator()
steps = accelerator.state.deepspeed_plugin.gradient_accumulation_steps
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
plugin = accelerator.state.deepspeed_plugin
updates = len(loader) // plugin.gradient_accumulation_steps
for batch in loader:
    with accelerator.accumulate(model):
        accelerator.backward(model(batch).mean())
        optimizer.step()
        optimizer.zero_grad()
