import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import StateDictType


def save(model, path, is_fsdp):
    if is_fsdp:
        with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT):
            state = model.state_dict()
        if dist.get_rank() == 0:
            torch.save(state, path)
    elif dist.get_rank() == 0:
        torch.save(model.state_dict(), path)
