"""The nodes are those of a graph."""

import torch.distributed as dist

index = 17
parent = index // num_nodes
