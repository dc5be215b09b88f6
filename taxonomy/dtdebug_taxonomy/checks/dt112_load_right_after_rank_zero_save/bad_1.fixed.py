import torch
import torch.distributed as dist

dist.init_process_group("gloo")
path = "model.pt"
if dist.get_rank() == 0:
    torch.save(model.state_dict(), path)
dist.barrier()
model.load_state_dict(torch.load(path, map_location="cpu"))  # dt: DT112
