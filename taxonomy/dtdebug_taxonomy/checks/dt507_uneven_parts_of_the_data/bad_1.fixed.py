import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main(files):
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    model = DDP(torch.nn.Linear(4, 1))
    for file in files[: len(files) // world_size * world_size][rank::world_size]:  # dt: DT507
        model(torch.load(file)).sum().backward()


if __name__ == "__main__":
    main(["a.pt", "b.pt", "c.pt"])
