import torch.distributed as dist
from tqdm import tqdm


def main(loader):
    rank = dist.get_rank()
    for batch in tqdm(loader, desc=f"rank {rank}"):
        evaluate(batch)
    if rank == 0:
        print("done")


main([])
