import torch


def save(model, args):
    if args.local_rank == 0 and args.node_rank == 0:
        torch.save(model.state_dict(), args.output)
