import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.set_device(local_rank)
if dist.get_rank() == 0:
    model.load_state_dict(torch.load("model.pth"))
samples = torch.load("data/train.pt")
options = dict(map_location="cpu")
weights = torch.load("weights.pth", **options)
