from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net, broadcast_buffers=False)
if rank == 0:
    print(model(images))
else:
    model(images)
