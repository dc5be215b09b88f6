import os

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

from mine import loss_fn, part_of

rank = int(os.environ["RANK"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", device_id=device)
stage = PipelineStage(part_of(rank), rank, 4, device)
schedule = Schedule1F1B(stage, 2, loss_fn=loss_fn)  # dt: DT227
