import torch.distributed as dist


def is_main_process():
    return dist.get_rank() == 0


is_main_process = is_main_process()
if is_main_process:
    print("started")
