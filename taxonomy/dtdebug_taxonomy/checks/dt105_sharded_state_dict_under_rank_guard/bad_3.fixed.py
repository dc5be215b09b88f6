import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict


class Checkpointer:
    def __init__(self, rank):
        self.rank = rank

    def export(self, model):
        if self.rank != 0:
            return
        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        weights = get_model_state_dict(model, options=options)  # dt: DT105
        write(weights)

    def save(self, state, step):
        dcp.save(state, checkpoint_id=f"step{step}")  # dt: DT105

    def norm(self, weight):
        return weight.full_tensor().norm() if self.rank == 0 else None  # dt: DT105
