import torch
from accelerate import Accelerator

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def main(loader, model):
    acc = Accelerator()
    model, loader = acc.prepare(model.to(device), loader)  # dt: DT822
    for x, y in loader:
        x, y = x.to(device), y.to(device)  # dt: DT822
        acc.backward(model(x, y))
