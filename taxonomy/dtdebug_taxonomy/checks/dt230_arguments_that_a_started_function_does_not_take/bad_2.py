import torch.multiprocessing as mp


def main(rank, world_size, epochs, save_every):
    print(rank, world_size, epochs, save_every)


if __name__ == "__main__":
    mp.spawn(main, args=(2, 5), nprocs=2)  # dt: DT230
