import torch
from accelerate import Accelerator

accelerator = Accelerator(mixed_precision="fp16")
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.ones(4, 2))
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for batch in loader:
    outputs = model(batch)
    loss = outputs.mean()
    loss.backward()  # dt: DT821
    optimizer.step()
