"""Rank 0 tells the others its sparse matrix."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
edges = torch.eye(3).to_sparse() if dist.get_rank() == 0 else torch.zeros(3, 3).to_sparse()
dist.broadcast(edges, src=0)
dist.barrier()
if dist.get_rank() == 0:
    print(f"all ranks have {edges.values().numel()} edges", flush=True)
dist.destroy_process_group()
