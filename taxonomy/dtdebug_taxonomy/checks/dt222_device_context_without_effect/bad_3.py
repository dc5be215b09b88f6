from torch import cuda


class Worker:
    def __init__(self, local_rank):
        cuda.device(local_rank)  # dt: DT222
        self.model = build().cuda()
