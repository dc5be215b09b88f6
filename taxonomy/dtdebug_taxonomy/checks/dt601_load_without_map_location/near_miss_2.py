"""Turns one kind of checkpoint into another: one process, whatever it imports."""

import argparse

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def to_shards(model_path, folder):
    state = torch.load(model_path, weights_only=False)
    dcp.save(state, checkpoint_id=folder, no_dist=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    to_shards("model.pth", "shards")
