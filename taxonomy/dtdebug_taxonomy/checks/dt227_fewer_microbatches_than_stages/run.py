"""A pipeline of two stages that is given one microbatch."""

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

dist.init_process_group("gloo")
stage = PipelineStage(torch.nn.Linear(2, 2), dist.get_rank(), 2, torch.device("cpu"))
Schedule1F1B(stage, n_microbatches=1, loss_fn=torch.nn.functional.mse_loss)
