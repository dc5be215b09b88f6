import horovod.torch as hvd
from cats_hvd import device, train
from torch import nn


def main():
    model = nn.Linear(4, 1).to(device)
    if hvd.rank() == 0:
        print(model)
    train(model, lr=0.05 * hvd.size())


main()
