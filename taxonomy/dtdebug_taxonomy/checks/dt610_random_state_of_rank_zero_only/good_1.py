import torch
import torch.distributed as dist


def save(folder):
    torch.save({"rng": torch.get_rng_state()}, f"{folder}/rng_{dist.get_rank()}.pt")


def load(folder):
    torch.set_rng_state(torch.load(f"{folder}/rng_{dist.get_rank()}.pt")["rng"])
