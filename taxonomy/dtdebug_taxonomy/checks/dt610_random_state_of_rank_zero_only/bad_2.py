import torch
import torch.distributed as dist


def checkpoint(model, path):
    if dist.get_rank() == 0:
        torch.save({"m": model.state_dict(), "cuda": torch.cuda.get_rng_state()}, path)  # dt: DT610


def resume(model, path):
    saved = torch.load(path, map_location="cpu")
    torch.cuda.set_rng_state(saved["cuda"])
