import torch
import torch.distributed as dist

dist.init_process_group("gloo")
groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
tp_group = groups[dist.get_rank() // 2]
dist.broadcast(torch.ones(1), src=0, group=tp_group)
