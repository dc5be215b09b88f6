"""A program of one machine, which knows of no other rank."""

import torch


def save(model, args):
    if args.local_rank == 0:
        torch.save(model.state_dict(), args.output)
