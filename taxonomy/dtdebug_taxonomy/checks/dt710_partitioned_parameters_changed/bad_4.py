import deepspeed
from torch import nn


def build(config):
    with deepspeed.zero.Init(config_dict_or_path=config):
        model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 2))
    nn.init.zeros_(model[1].weight)  # dt: DT710
    with deepspeed.zero.GatheredParameters(model[0].weight, modifier_rank=0):
        nn.init.normal_(model[0].weight)
    return model
