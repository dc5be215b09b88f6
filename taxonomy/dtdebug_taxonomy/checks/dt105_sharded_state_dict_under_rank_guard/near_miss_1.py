from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.fsdp import fully_shard


def shard(model, rank):
    full = get_model_state_dict(model) if rank == 0 else {}
    fully_shard(model)
    return load_everywhere(model, full)
