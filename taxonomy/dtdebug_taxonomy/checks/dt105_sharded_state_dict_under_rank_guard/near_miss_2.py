import torch.distributed.checkpoint as dcp


def load(folder, state, rank0=False):
    if rank0:  # how it is called, alike on every rank
        state = {"iteration": None}
        dcp.load(state, checkpoint_id=folder)
    else:
        dcp.load_state_dict(state, dcp.FileSystemReader(folder))
    return state


arguments = load("run", {}, rank0=True)
weights = load("run", {"model": None}, rank0=False)
