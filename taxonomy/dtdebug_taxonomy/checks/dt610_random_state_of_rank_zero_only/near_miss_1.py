"""One process saves and loads."""

import torch


def save(path):
    torch.save({"rng": torch.get_rng_state()}, path)


def load(path):
    torch.set_rng_state(torch.load(path)["rng"])
