import torch
from accelerate import Accelerator

accelerator = Accelerator()
model, eval_dataloader = accelerator.prepare(torch.nn.Linear(2, 1), [])
metric = []
model.eval()
for batch in eval_dataloader:
    with torch.no_grad():
        predictions = model(batch["x"]).argmax(-1)
    predictions, references = accelerator.gather_for_metrics((predictions, batch["labels"]))  # dt: DT823
    metric.append((predictions == references).sum())
