from datetime import timedelta
import torch.distributed as dist

dist.init_process_group("nccl", timeout=timedelta(seconds=1800))  # dt: DT209
