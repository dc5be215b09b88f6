import torch
from accelerate import Accelerator

accelerator = Accelerator()
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer, loader = accelerator.prepare(model, optimizer, load())
for images, labels in loader:
    loss = (model(images) - labels).pow(2).mean()  # dt: DT302
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
