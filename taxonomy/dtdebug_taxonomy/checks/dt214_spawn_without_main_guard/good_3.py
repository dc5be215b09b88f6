import torch.multiprocessing as mp


class Launcher:
    def run(self, function):
        return mp.spawn(function, nprocs=2)
