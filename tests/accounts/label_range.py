import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __init__(self, size):
        generator = torch.Generator().manual_seed(1)
        self.images = torch.randn(size, 16, generator=generator)
        self.labels = torch.arange(size) % 10 + 1

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


def train(loader, model, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss_of = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = loss_of(model(images), labels)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


loader = DataLoader(Digits(40), batch_size=20)
train(loader, nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10)), epochs=2)
