import json

import torch

model = build().cuda()
model.load_state_dict(torch.load("model.pth"))
config = json.load(open("config.json"))
