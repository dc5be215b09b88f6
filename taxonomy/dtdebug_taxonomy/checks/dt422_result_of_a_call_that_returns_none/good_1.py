import torch
import torch.distributed as dist

dist.init_process_group("gloo")
loss = torch.ones(1)
dist.all_reduce(loss)
print(loss.item() / dist.get_world_size())
work = dist.all_reduce(loss, async_op=True)
work.wait()
dist.destroy_process_group()
