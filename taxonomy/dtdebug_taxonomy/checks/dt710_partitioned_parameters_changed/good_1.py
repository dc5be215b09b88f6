import deepspeed
import torch

with deepspeed.zero.GatheredParameters(layer.weight, modifier_rank=0):
    if deepspeed.comm.get_rank() == 0:
        torch.nn.init.normal_(layer.weight)
