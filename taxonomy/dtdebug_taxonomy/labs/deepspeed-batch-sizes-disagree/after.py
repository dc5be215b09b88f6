"""Trains with DeepSpeed on two processes."""

import os

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
import torch

CONFIG = {
    "train_batch_size": 8,
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 2,
    "zero_optimization": {"stage": 1},
    "zero_allow_untested_optimizer": True,
}
deepspeed.init_distributed("gloo")
net = torch.nn.Linear(8, 1)
engine, *_ = deepspeed.initialize(model=net, optimizer=torch.optim.Adam(net.parameters()), config=CONFIG)
for _ in range(3):
    engine.backward(engine(torch.randn(2, 8)).square().mean())
    engine.step()
if engine.global_rank == 0:
    print("trained 3 steps", flush=True)
torch.distributed.destroy_process_group()
