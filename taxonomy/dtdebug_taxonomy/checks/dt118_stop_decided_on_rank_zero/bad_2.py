import torch.distributed as dist


def solve(state, rank):
    done = False
    while True:
        dist.all_reduce(state)
        if rank == 0:
            done = bool(state.abs().max() < 1e-6) or asked_to_stop()
        if done:  # dt: DT118
            break
