import torch

model = torch.nn.Linear(2, 2).to("cuda:0")
torch.cuda.set_device(0)
print(model)
