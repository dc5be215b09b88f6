from accelerate import Accelerator

accelerator = Accelerator()
predictions = accelerator.gather_for_metrics(model(batch))
accelerator.wait_for_everyone()
if accelerator.is_main_process:
    metric.add(predictions)
    accelerator.save(accelerator.unwrap_model(model).state_dict(), "model.pt")
