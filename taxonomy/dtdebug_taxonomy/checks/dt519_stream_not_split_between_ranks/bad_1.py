import torch.distributed as dist
from datasets import load_dataset
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("nccl")
ds = load_dataset("c4", "en", split="train", streaming=True).shuffle(seed=42)  # dt: DT519
model = DDP(net)
for batch in ds.batch(8):
    model(batch).loss.backward()
