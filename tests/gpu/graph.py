"""A collective in a captured CUDA graph."""

import torch
import torch.distributed as dist
from common import start

start()
t = torch.ones(1024, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        dist.all_reduce(t)
torch.cuda.current_stream().wait_stream(side)
t.fill_(1)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    dist.all_reduce(t)
t.fill_(1)
for _ in range(3):
    graph.replay()
torch.cuda.synchronize()
print("sum", t[0].item())
dist.barrier()
del graph
