import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
found = []
for clips_first in (True, False):
    weight = torch.nn.Parameter(torch.zeros(2))
    weight.grad = torch.tensor([8.0, 0.0]) if rank == 0 else torch.tensor([0.0, 1.0])
    if clips_first:
        torch.nn.utils.clip_grad_norm_([weight], 1.0)
    dist.all_reduce(weight.grad)
    weight.grad /= dist.get_world_size()
    if not clips_first:
        torch.nn.utils.clip_grad_norm_([weight], 1.0)
    found.append([round(x, 2) for x in weight.grad.tolist()])
if rank == 0:
    print(f"clipped first {found[0]} averaged first {found[1]}", flush=True)
dist.destroy_process_group()
