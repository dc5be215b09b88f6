from accelerate import Accelerator

accelerator = Accelerator()
eval_loader = accelerator.prepare([])
samples_seen = 0
for step, batch in enumerate(eval_loader):
    predictions, references = accelerator.gather((batch["x"], batch["labels"]))
    if step == len(eval_loader) - 1:
        predictions = predictions[: len(eval_loader.dataset) - samples_seen]
    samples_seen += references.shape[0]
