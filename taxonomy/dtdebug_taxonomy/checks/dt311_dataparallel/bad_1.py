import torch

model = torch.nn.DataParallel(torch.nn.Linear(2, 2).cuda())  # dt: DT311
