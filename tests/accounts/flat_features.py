import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, kernel_size=3)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(8 * 12 * 12, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.conv(x)))
        x = x.flatten(1)
        return self.fc(x)


model = Net()
batch = torch.randn(4, 1, 28, 28)
model(batch)
model.eval()
print(model(torch.randn(4, 1, 32, 32)).argmax(1))
