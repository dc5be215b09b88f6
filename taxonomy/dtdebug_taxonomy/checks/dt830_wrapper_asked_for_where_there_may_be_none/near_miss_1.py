"""Only several processes come here."""

from accelerate import Accelerator

accelerator = Accelerator()
model = accelerator.prepare(build_model())
if accelerator.num_processes > 1:
    print(model.module.h)
