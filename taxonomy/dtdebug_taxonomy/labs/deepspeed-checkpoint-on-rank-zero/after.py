"""Trains with DeepSpeed on two processes and saves a checkpoint."""

import os
import sys

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
import torch

CONFIG = {
    "train_micro_batch_size_per_gpu": 2,
    "zero_optimization": {"stage": 1},
    "zero_allow_untested_optimizer": True,
}
FOLDER = sys.path[0] + "/checkpoints"
deepspeed.init_distributed("gloo")
net = torch.nn.Linear(8, 1)
engine, *_ = deepspeed.initialize(model=net, optimizer=torch.optim.Adam(net.parameters()), config=CONFIG)
for _ in range(3):
    engine.backward(engine(torch.randn(2, 8)).square().mean())
    engine.step()
engine.save_checkpoint(FOLDER)
seen = torch.tensor(1.0)
torch.distributed.all_reduce(seen)
if engine.global_rank == 0:
    print(f"saved after {seen:.0f} ranks have trained", flush=True)
torch.distributed.destroy_process_group()
