import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import StateDictType


def shard(model):
    return FSDP(model)


def main(build, rank, path):
    model = build()
    if rank == 0:
        known = model.state_dict()
        model.load_state_dict({**known, **torch.load(path, map_location="cpu")})
    model = shard(model)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT):
        return model.state_dict()
