from multiprocessing import Process


def run(rank):
    print(rank)


if __name__ == "__main__":
    ranks = [Process(target=run, args=(2,)) for _ in range(2)]  # dt: DT230
    for rank in ranks:
        rank.start()
