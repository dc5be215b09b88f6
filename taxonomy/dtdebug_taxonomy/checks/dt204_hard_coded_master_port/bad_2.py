from torch.distributed import init_process_group


def setup(rank, world_size):
    init_process_group(
        "nccl",
        init_method="tcp://127.0.0.1:23456",  # dt: DT204
        rank=rank,
        world_size=world_size,
    )
