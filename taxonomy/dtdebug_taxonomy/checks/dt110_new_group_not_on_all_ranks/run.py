import torch
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    group = dist.new_group([0], use_local_synchronization=False)
    dist.all_reduce(torch.ones(1), group=group)
    print("gloo lets it pass", flush=True)
