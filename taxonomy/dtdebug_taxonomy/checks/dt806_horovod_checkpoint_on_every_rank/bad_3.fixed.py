import argparse

import horovod.torch as hvd
import torch


class Trainer:
    def __init__(self, args):
        self.args = args
        self.model = torch.nn.Linear(1, 1)

    def save(self):
        if hvd.rank() == 0:
            torch.save({"model": self.model.state_dict()}, self.args.path)  # dt: DT806

    def run(self):
        self.save()


if __name__ == "__main__":
    hvd.init()
    Trainer(argparse.Namespace(path="m.pt")).run()
