import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_model_state_dict

state = get_model_state_dict(model)
dcp.save({"model": state}, checkpoint_id="out")
if dist.get_rank() == 0:
    print("saved")
    dcp.save({"small": numbers}, checkpoint_id="numbers", no_dist=True)
