import torch.distributed as dist

node_rank = dist.get_rank() // gpus_per_node
