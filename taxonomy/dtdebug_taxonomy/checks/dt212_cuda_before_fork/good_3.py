import torch
import torch.multiprocessing as mp


def worker(rank):
    torch.cuda.set_device(rank)


if __name__ == "__main__":
    weights = torch.zeros(4).cuda()
    mp.spawn(worker, nprocs=2)
