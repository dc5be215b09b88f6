import torch
from torch import distributed
from torch.optim import SGD


class Trainer:
    def __init__(self, model):
        self.model = torch.nn.parallel.DistributedDataParallel(model)
        self.lr = 0.05
        self.optimizer = SGD(self.model.parameters(), lr=self.lr, weight_decay=1e-4)  # dt: DT509


if __name__ == "__main__":
    distributed.init_process_group("nccl")
    Trainer(torch.nn.Linear(1, 1))
