import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("nccl")
model = DDP(net.cuda(), device_ids=[local_rank])
checkpoint = torch.load(args.resume)  # dt: DT601
model.load_state_dict(checkpoint["model"])
