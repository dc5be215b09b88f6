from torch import cuda


class Worker:
    def __init__(self, local_rank):
        cuda.set_device(local_rank)  # dt: DT222
        self.model = build().cuda()
