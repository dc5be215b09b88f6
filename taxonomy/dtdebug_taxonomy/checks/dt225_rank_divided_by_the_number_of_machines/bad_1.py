import torch.distributed as dist

rank = dist.get_rank()
node_rank = rank // num_nodes  # dt: DT225
