import threading

import torch.distributed as dist

group = dist.new_group()


def report():
    dist.all_reduce(total, group=group)


threading.Thread(target=report).start()
dist.barrier()
