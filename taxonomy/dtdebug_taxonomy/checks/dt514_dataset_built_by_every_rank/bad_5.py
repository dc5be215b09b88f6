import deepspeed
import torchvision
from torch.utils.data import DataLoader


def loaders():
    data = torchvision.datasets.CIFAR10(root="./data", train=True, download=True)  # dt: DT514
    return DataLoader(data, batch_size=32)


def main(model):
    loader = loaders()
    engine, _, _, _ = deepspeed.initialize(model=model, config="ds.json")
    for x, y in loader:
        engine.backward(engine(x, y))
        engine.step()


if __name__ == "__main__":
    main(None)
