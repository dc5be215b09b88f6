import torch.distributed as dist
from torch_geometric.loader import NeighborLoader


def run(rank, world_size, data):
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    train_idx = data.train_mask.nonzero().view(-1)
    train_idx = train_idx.split(train_idx.size(0) // world_size)[rank]  # dt: DT526
    return NeighborLoader(data, input_nodes=data.train_mask, shuffle=True)
