import torch.distributed as dist


def worker(gpu, node_rank, gpus_per_node, world_size):
    rank = node_rank * gpus_per_node + gpu
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:23456", rank=rank, world_size=world_size)  # dt: DT205
