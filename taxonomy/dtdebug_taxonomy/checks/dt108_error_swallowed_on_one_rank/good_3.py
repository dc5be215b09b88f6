import sys

from accelerate import Accelerator

accelerator = Accelerator()
for batch in loader:
    try:
        batch = decode(batch)
    except RuntimeError:
        batch = fallback
    try:
        accelerator.backward(model(batch))
    except Exception as error:
        if accelerator.num_processes > 1:
            raise
        print(error)
