from accelerate import Accelerator

accelerator = Accelerator()
for batch in accelerator.prepare([]):
    predictions, references = accelerator.gather_for_metrics((batch["x"], batch["labels"]))
