import torch
import torch.distributed as dist

dist.init_process_group("gloo")
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # dt: DT420
    optimizer.step()
dist.destroy_process_group()
