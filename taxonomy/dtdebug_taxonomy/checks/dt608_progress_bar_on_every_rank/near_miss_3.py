import torch.distributed as dist
from tqdm import tqdm


def train(loader, step):
    global tqdm
    if dist.get_rank() != 0:
        tqdm = iter
    for batch in tqdm(loader):
        step(batch)
    if dist.get_rank() == 0:
        print("done")
