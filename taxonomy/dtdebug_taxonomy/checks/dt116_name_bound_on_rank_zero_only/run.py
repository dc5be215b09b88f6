import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
if rank == 0:
    config = {"layers": 4}
print(config["layers"])
