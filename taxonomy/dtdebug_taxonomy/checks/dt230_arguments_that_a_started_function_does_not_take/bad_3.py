import torch.multiprocessing as mp


def train(world_size):
    print(world_size)


if __name__ == "__main__":
    mp.spawn(train, args=(2,), nprocs=2)  # dt: DT230
