import torch.multiprocessing as mp


def train(rank):
    print(rank)


if __name__ == "__main__":
    mp.spawn(train, nprocs=2)
