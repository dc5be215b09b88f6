from torch import distributed as dist
from torch import multiprocessing as mp


def run(rank, size, function):
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29500", rank=rank, world_size=size)
    function(rank)


if __name__ == "__main__":
    processes = []
    for rank in range(4):  # dt: DT231
        p = mp.Process(target=run, args=(rank, 2, print))
        p.start()
        processes.append(p)
