import torch.distributed as dist


def rounds(state, patience):
    worse = 0
    while True:
        dist.all_reduce(state)
        if dist.get_rank() == 0:
            worse += state.item() > 1
            if worse > patience:
                print("no progress")
                break  # dt: DT117
