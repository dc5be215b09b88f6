import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullStateDictConfig, StateDictType
from torch.distributed.fsdp import FullyShardedDataParallel


def save_model(model, optimizer, rank, path):
    config = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT, config):
        weights = model.state_dict()  # dt: DT105
    state = FullyShardedDataParallel.optim_state_dict(model, optimizer)  # dt: DT105
    if rank == 0:
        torch.save({"model": weights, "optimizer": state}, path)
