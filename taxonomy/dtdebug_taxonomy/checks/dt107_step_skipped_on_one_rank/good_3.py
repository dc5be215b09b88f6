import torch
from accelerate import Accelerator

accelerator = Accelerator()
for batch in loader:
    loss = model(**batch).loss
    mean_loss = accelerator.gather(loss).mean()
    if torch.isnan(mean_loss):
        continue
    loss = torch.nan_to_num(loss)
    accelerator.backward(loss)
    if torch.isnan(loss):
        print("nan")
