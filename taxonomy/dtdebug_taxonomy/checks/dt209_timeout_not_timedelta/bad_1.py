import torch.distributed as dist

dist.init_process_group("nccl", timeout=1800)  # dt: DT209
