from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
for micro_step in range(4):
    model.require_backward_grad_sync = micro_step == 3
    logits, loss = model(x, y)
    loss.backward()
