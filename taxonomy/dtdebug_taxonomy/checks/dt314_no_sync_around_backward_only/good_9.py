from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net) if ddp else net
for step in range(steps):
    if ddp:
        model.require_backward_grad_sync = step == steps - 1
    loss = model(x) / steps
    loss.backward()
