import math

import torch

for x, y in loader:
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    optimizer.step()
    print(torch.nn.utils.clip_grad_norm_(model.parameters(), math.inf))
