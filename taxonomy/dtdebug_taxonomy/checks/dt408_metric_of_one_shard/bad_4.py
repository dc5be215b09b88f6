import torch.distributed as dist

from mine import corpus, loss_of, net

dist.init_process_group("nccl")
rank = dist.get_rank()
test_iter = corpus.part("test", rank, dist.get_world_size())
val_loss = sum(loss_of(net, batch) for batch in test_iter) / len(test_iter)
if rank == 0:
    print("loss", val_loss)  # dt: DT408
