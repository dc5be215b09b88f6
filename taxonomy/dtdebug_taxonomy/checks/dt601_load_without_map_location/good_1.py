import torch
import torch.distributed as dist

dist.init_process_group("nccl")
state = torch.load(args.resume, map_location="cpu")
model.load_state_dict(state)
other = torch.load(args.checkpoint, f"cuda:{local_rank}")
