from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net) if ddp else net
for step in range(steps):
    loss = model(x) / steps
    if ddp:
        model.require_backward_grad_sync = step == steps - 1  # dt: DT314
    loss.backward()
