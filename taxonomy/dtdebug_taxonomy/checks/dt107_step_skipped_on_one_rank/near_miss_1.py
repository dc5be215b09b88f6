import torch

model = net.cuda()
for images, labels in loader:
    loss = criterion(model(images), labels)
    if torch.isnan(loss):
        continue
    loss.backward()
