import torch.distributed as dist
import torch.multiprocessing as mp


def train(local_rank, node, per_node, world_size):
    dist.init_process_group("gloo", rank=node * per_node + local_rank, world_size=world_size)


if __name__ == "__main__":
    mp.spawn(train, args=(0, 2, 4), nprocs=2)
