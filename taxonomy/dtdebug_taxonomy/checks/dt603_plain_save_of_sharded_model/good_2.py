import deepspeed
import torch

config = {"zero_optimization": {"stage": 2}}
engine, _, _, _ = deepspeed.initialize(model=net, config=config)
torch.save(engine.module.state_dict(), "model.pt")
