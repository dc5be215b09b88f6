import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("nccl")
torch.manual_seed(1234)
fully_shard(model)
for step in range(100):
    x = next(batches)
    z = torch.randn(len(x), 64, device="cuda")  # dt: DT516
    fake = model(z)
    loss = criterion(fake, x)
    loss.backward()
