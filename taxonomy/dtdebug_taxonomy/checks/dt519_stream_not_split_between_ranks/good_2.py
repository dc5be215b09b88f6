from accelerate import Accelerator
from datasets import load_dataset

accelerator = Accelerator()
ds = load_dataset("c4", "en", split="train", streaming=True)
loader = accelerator.prepare(make_loader(ds))
for batch in loader:
    accelerator.backward(model(batch).loss)
