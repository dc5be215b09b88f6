import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def worker(rank):
    dist.init_process_group("gloo", init_method="tcp://localhost:29511", rank=rank, world_size=2)
    dist.all_gather([torch.zeros(2) for _ in range(dist.get_world_size())], torch.ones(2))  # dt: DT424


if __name__ == "__main__":
    mp.spawn(worker, nprocs=2)
