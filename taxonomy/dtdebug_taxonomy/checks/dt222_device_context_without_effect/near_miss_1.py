"""A program of one process that has no other GPU."""

import torch

torch.cuda.device(0)
model = build().cuda()
