import torch.optim as optim
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, net):
        self.model = DistributedDataParallel(net)
        self.optimizer = optim.Adam(self.model.parameters())

    def run(self):
        for batch in self.loader:
            self.model(batch).sum().backward()
            self.optimizer.step()  # dt: DT321


if __name__ == "__main__":
    Trainer(net).run()
