import torch
from accelerate import notebook_launcher


def train(model):
    print(model)


model = torch.nn.Linear(2, 2).to("cuda")
notebook_launcher(train, args=(model,), num_processes=2)  # dt: DT212
