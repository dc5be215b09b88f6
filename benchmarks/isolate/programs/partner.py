"""Each rank exchanges its activations with a partner; with an odd number of ranks the last has none."""

import torch
import torch.distributed as dist


def exchange(x, rank):
    other = rank ^ 1
    theirs = torch.empty_like(x)
    calls = [dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, theirs, other)]
    for work in dist.batch_isend_irecv(calls):
        work.wait()
    return (x + theirs) / 2


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    layer = torch.nn.Linear(8, 8)
    for _ in range(3):
        x = layer(torch.randn(4, 8)).detach()
        if dist.get_world_size() > 1:
            x = exchange(x, rank)
    dist.barrier()
    dist.destroy_process_group()


main()
