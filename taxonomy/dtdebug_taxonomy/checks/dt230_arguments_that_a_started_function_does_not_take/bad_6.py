import torch.multiprocessing as mp

epochs = 3


def train(rank, world_size, epochs):
    print(rank, world_size, epochs)


if __name__ == "__main__":
    mp.spawn(train, args=(2,), nprocs=2)  # dt: DT230
