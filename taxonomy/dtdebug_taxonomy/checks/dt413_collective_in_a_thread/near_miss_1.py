"""The thread is the whole communication of the program."""

import threading

import torch.distributed as dist


def serve():
    while True:
        dist.broadcast_object_list(box, 0)


threading.Thread(target=serve).start()
