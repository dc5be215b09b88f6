from accelerate import Accelerator

accelerator = Accelerator()
for step, batch in enumerate(loader):
    loss = model(**batch).loss
    accelerator.backward(loss)
    if accelerator.sync_gradients and accelerator.is_main_process:
        accelerator.save_state(f"out/checkpoint-{step}")  # dt: DT103
if accelerator.is_main_process:
    state = accelerator.get_state_dict(model)  # dt: DT103
    accelerator.unwrap_model(model).save_pretrained("out", state_dict=state)
