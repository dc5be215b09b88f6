import torch
import torch.distributed as dist

dist.init_process_group("gloo")
loss = torch.ones(1)
dist.all_reduce(loss)  # dt: DT422
print(loss.item() / dist.get_world_size())
dist.destroy_process_group()
