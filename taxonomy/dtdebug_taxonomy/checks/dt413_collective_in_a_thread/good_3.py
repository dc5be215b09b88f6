import threading

import torch.distributed as dist


def report():
    dist.all_reduce(total)


report()
threading.Thread(target=show).start()
dist.barrier()
