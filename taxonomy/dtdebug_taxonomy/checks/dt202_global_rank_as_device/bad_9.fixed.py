import os

import torch
import torch.distributed as dist
import torch_npu

rank = int(os.environ["RANK"])
local_rank = int(os.environ["LOCAL_RANK"])
torch.npu.set_device(int(os.environ["LOCAL_RANK"]))  # dt: DT202
dist.init_process_group("hccl")
