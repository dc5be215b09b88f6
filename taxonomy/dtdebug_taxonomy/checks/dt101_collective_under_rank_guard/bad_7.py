import torch.distributed as dist

dist.init_process_group("nccl")
first = False
if dist.get_rank() == 0:
    first = True
for epoch in range(3):
    train(epoch)
    if first:
        save(epoch)
        dist.barrier()  # dt: DT101
