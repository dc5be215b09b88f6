import torch
from torch import nn

model = nn.DataParallel(Net()).cuda()
model.load_state_dict(torch.load("best.pth"))
model.eval()
with torch.no_grad():
    for images in loader:
        print(model(images).argmax(1))
