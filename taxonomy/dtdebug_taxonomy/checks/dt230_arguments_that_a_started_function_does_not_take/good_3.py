import torch.multiprocessing as mp


class Trainer:
    def run(self, rank, world_size):
        print(rank, world_size)


def main(rank, world_size):
    Trainer().run(rank, world_size)


if __name__ == "__main__":
    for rank in range(2):
        mp.Process(target=main, args=(rank, 2)).start()
        mp.Process(target=main, kwargs={"rank": rank, "world_size": 2}).start()
        mp.Process(target=Trainer().run, args=(rank,)).start()
    print("all started")
