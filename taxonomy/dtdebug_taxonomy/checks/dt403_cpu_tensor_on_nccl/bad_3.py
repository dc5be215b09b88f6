import deepspeed
import torch
import torch.distributed as dist

deepspeed.init_distributed()
loss = torch.rand(3, device="cuda").mean()
dist.all_reduce(loss.detach().cpu())  # dt: DT403
sizes = [torch.zeros(1, device="cuda") for _ in range(dist.get_world_size())]
dist.all_gather(sizes, torch.zeros(1).float())  # dt: DT403
