import deepspeed

with deepspeed.zero.GatheredParameters(model.parameters()):
    state = {k: v.clone().cpu() for k, v in model.state_dict().items()}
    print(sum(p.abs().sum() for p in model.parameters()))
