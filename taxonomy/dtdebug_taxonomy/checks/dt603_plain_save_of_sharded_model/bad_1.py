import deepspeed
import torch

config = {"train_batch_size": 8, "zero_optimization": {"stage": 3}}
engine, _, _, _ = deepspeed.initialize(model=net, config=config)
train(engine)
if engine.global_rank == 0:
    torch.save(engine.module.state_dict(), "model.pt")  # dt: DT603
