import torch
import torch.multiprocessing as mp


def worker(rank):
    torch.cuda.set_device(rank)


if __name__ == "__main__":
    mp.set_start_method("spawn")
    weights = torch.zeros(4).cuda()
    process = mp.Process(target=worker, args=(0,))
    process.start()
