import torch
import torch.distributed as dist


def save(path, model):
    state = {"model": model.state_dict(), "rng": torch.get_rng_state()}  # dt: DT610
    if dist.get_rank() == 0:
        torch.save(state, path)
    dist.barrier()


def load(path):
    state = torch.load(path, map_location="cpu")
    torch.set_rng_state(state["rng"])
