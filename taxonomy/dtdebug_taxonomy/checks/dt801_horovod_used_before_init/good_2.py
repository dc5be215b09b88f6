import horovod.torch as hvd


class Trainer:
    def __init__(self):
        self.rank = hvd.rank()

    def show(self):
        print(self.rank, hvd.size())


def main():
    hvd.init()
    Trainer().show()


if __name__ == "__main__":
    main()
