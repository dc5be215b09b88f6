"""A hook that compresses gradients keeps what it has left out, in one tensor for all buckets."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class LeftOut:
    def __init__(self):
        self.kept = None


def compress(state, bucket):
    gradient = bucket.buffer()
    if state.kept is None:
        state.kept = torch.zeros_like(gradient)
    wanted = gradient + state.kept
    sent = wanted.half().float()
    state.kept = wanted - sent
    done = dist.all_reduce(sent, async_op=True).get_future()
    return done.then(lambda f: f.value()[0] / dist.get_world_size())


def main():
    dist.init_process_group("gloo")
    model = DDP(torch.nn.Sequential(torch.nn.Linear(900, 900), torch.nn.ReLU(), torch.nn.Linear(900, 500)))
    model.register_comm_hook(LeftOut(), compress)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(4):
        opt.zero_grad()
        model(torch.randn(2, 900)).square().mean().backward()
        opt.step()
    dist.destroy_process_group()


main()
