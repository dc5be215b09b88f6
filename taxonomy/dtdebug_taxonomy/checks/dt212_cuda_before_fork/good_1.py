import torch
from accelerate import notebook_launcher


def train():
    return torch.nn.Linear(2, 2).cuda()


print(torch.cuda.is_available(), torch.cuda.device_count())
notebook_launcher(train, num_processes=2)
model = train().cuda()
