import torch.distributed as dist
from deepspeed.zero import GatheredParameters


def load(model, state):
    params = [p for p in model.parameters() if hasattr(p, "ds_id")]
    with GatheredParameters(params, modifier_rank=0):  # dt: DT710
        if dist.get_rank() == 0:
            model.load_state_dict(state)
