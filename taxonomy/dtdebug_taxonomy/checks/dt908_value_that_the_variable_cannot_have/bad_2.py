import os

os.environ["MASTER_ADDR"] = "localhost"
os.environ["MASTER_PORT"] = "localhost:29500"  # dt: DT908
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size:128"  # dt: DT908
os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "true"  # dt: DT908

import torch.distributed as dist

dist.init_process_group("nccl")
