# %% [markdown]
# # Two ranks in a notebook
import torch.multiprocessing as mp


def train(rank, world_size):
    print(rank, world_size)


mp.start_processes(train, args=(2,), nprocs=2, join=True, start_method="fork")  # dt: DT213
