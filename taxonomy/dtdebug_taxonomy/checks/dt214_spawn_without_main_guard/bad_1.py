import torch.multiprocessing as mp


def train(rank):
    print(rank)


mp.spawn(train, nprocs=4)  # dt: DT214
