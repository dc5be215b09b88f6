import deepspeed
import torch

with deepspeed.zero.GatheredParameters(layer.weight):  # dt: DT710
    torch.nn.init.normal_(layer.weight, std=0.02)
