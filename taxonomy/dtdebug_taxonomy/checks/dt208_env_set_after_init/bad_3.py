from os import environ

from torch.distributed import barrier, init_process_group


class Trainer:
    def __init__(self, interface):
        init_process_group("gloo")
        barrier()
        environ["GLOO_SOCKET_IFNAME"] = interface  # dt: DT208
