import torch.distributed as dist
import torch.multiprocessing as mp

PORT = 29511


def train(rank, world_size):
    dist.init_process_group(
        "nccl",
        init_method="tcp://localhost:{}".format(PORT),  # dt: DT204
        rank=rank,
        world_size=world_size,
    )
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(4,), nprocs=4)
