from accelerate import Accelerator

accelerator = Accelerator()
model = accelerator.prepare(build_model())
inner = model.module if hasattr(model, "module") else model
