import os

os.environ["CUDA_VISIBLE_DEVICES"] = "2"
import torch

model = torch.nn.Linear(2, 2).cuda()
