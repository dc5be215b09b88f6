import torch.multiprocessing as mp


def work(rank):
    print(rank)


mp.spawn(work, nprocs=1)
