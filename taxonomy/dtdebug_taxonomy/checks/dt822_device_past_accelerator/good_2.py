import torch

x = torch.ones(1, 2).to("cuda")
y = x.cuda()
