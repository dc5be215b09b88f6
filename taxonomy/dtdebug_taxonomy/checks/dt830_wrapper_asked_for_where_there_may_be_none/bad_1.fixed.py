from accelerate import Accelerator

accelerator = Accelerator()
model = accelerator.prepare(build_model())
for batch in loader:
    accelerator.backward(model(batch))
    print(accelerator.unwrap_model(model).h)  # dt: DT830
