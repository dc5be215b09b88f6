from datasets import load_dataset
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

model = FSDP(net)
STREAMING = True
rows = load_dataset("wiki", split="train", streaming=STREAMING)  # dt: DT519
for row in rows:
    model(row).mean().backward()
