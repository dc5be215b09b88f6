"""Averages gradients by hand in place of a wrapper."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)  # each rank draws samples of its own
model = torch.nn.Linear(8, 1)
for parameter in model.parameters():
    dist.broadcast(parameter.data, src=0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    loss = (model(torch.randn(16, 8)) - 1).square().mean()
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= world
    optimizer.step()
weights = [torch.zeros_like(model.weight) for _ in range(world)]
dist.all_gather(weights, model.weight.data)
print(f"rank {rank}: loss {loss.item():.3f}, sum of weights {model.weight.sum().item():.4f}", flush=True)
if rank == 0:
    same = torch.allclose(weights[0], weights[1])
    print(f"the weights of the ranks are {'equal' if same else 'different'}", flush=True)
dist.destroy_process_group()
