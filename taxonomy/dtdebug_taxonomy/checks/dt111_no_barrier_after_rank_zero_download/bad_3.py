import urllib.request

import torch
import torch.distributed as dist


def main(rank, url, path="data/train.pt"):
    if not rank:
        urllib.request.urlretrieve(url, path)  # dt: DT111
    data = torch.load(path)
    train(data)


if __name__ == "__main__":
    torch.multiprocessing.spawn(main, args=(URL,), nprocs=4)
