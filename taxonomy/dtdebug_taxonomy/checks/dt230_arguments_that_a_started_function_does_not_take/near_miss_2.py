import torch.multiprocessing as mp


def swap(rank, left, right):
    print(rank, left, right)


if __name__ == "__main__":
    left, middle = 1, 2
    mp.spawn(swap, args=(middle, left), nprocs=2)
