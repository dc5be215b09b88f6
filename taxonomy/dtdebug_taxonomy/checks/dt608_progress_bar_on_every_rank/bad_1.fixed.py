import torch.distributed as dist
from tqdm import tqdm


def train(loader, epochs):
    rank = dist.get_rank()
    for epoch in range(epochs):
        for batch in tqdm(loader, disable=rank != 0):  # dt: DT608
            step(batch)
        if rank == 0:
            print(f"epoch {epoch} done")


train([], 3)
