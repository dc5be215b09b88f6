from accelerate import Accelerator

accelerator = Accelerator()
model = accelerator.prepare(build_model())
state = accelerator.unwrap_model(model).state_dict()
