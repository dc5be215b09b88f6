import torch


class Trainer:
    def __init__(self, model, args):
        self.is_main = args.rank == 0
        self.model = torch.nn.parallel.DistributedDataParallel(model) if self.is_main else model  # dt: DT308
