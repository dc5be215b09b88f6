"""DDP or FSDP2 in bfloat16; `moved`: an input of rank 1 is another in step 8; `rate`: rank 1 has another rate."""

import sys
import time

import torch
import torch.distributed as dist
from common import RANK, model, start
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

start()
torch.manual_seed(0)
net = model()
if "fsdp" in sys.argv:
    for layer in net:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer)
    fully_shard(net)
else:
    net = DistributedDataParallel(net, device_ids=[0])
torch.manual_seed(1234 + RANK)
rate = 0.02 if "rate" in sys.argv and RANK == 1 else 0.01
optimizer = torch.optim.SGD(net.parameters(), lr=rate)
times = []
for step in range(30):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    x = torch.randn(64, 256, device="cuda")
    if "moved" in sys.argv and RANK == 1 and step == 8:
        x[0, 0] += 1
    with torch.autocast("cuda", torch.bfloat16):
        loss = net(x).float().square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    times.append(time.perf_counter() - begin)
torch.cuda.synchronize()
print(f"rank {RANK}: loss {loss.item():.6f}, {sorted(times)[15] * 1e3:.2f} ms", flush=True)
dist.destroy_process_group()
