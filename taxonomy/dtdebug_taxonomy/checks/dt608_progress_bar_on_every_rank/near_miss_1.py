import torch.distributed as dist
from tqdm import tqdm


def main(loader):
    if dist.get_rank() != 0:
        return
    for batch in tqdm(loader):
        evaluate(batch)
    if dist.get_rank() == 0:
        print("done")


main([])
