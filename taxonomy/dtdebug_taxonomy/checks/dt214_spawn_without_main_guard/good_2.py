import torch.multiprocessing as mp


def train(rank):
    print(rank)


def main():
    mp.spawn(train, nprocs=4)


if __name__ == "__main__" and True:
    main()
