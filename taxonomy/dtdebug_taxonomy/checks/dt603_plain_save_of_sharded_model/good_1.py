import deepspeed
import torch

config = {"zero_optimization": {"stage": 3}}
engine, _, _, _ = deepspeed.initialize(model=net, config=config)
engine.save_checkpoint("out")
with deepspeed.zero.GatheredParameters(list(engine.parameters())):
    torch.save(engine.module.state_dict(), "model.pt")
