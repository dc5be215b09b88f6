import os

import torch
import torch.distributed as dist

from layers import TensorParallelModel
from data import token_batches


class Topology:
    def __init__(self, tensor_size):
        rank, world = dist.get_rank(), dist.get_world_size()
        self.tensor_group = self.data_group = None
        for start in range(0, world, tensor_size):
            ranks = list(range(start, start + tensor_size))
            group = dist.new_group(ranks)
            if rank in ranks:
                self.tensor_group = group
        for offset in range(tensor_size):
            ranks = list(range(offset, world, tensor_size))
            group = dist.new_group(ranks)
            if rank in ranks:
                self.data_group = group
                self.data_root = ranks[0]

    def sync_parameters(self, model):
        for p in model.parameters():
            dist.broadcast(p.data, src=0, group=self.data_group)  # dt: DT410

    def sync_gradients(self, model):
        size = dist.get_world_size(self.data_group)
        for p in model.parameters():
            dist.all_reduce(p.grad, group=self.data_group)
            p.grad /= size


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    topology = Topology(tensor_size=4)
    model = TensorParallelModel(group=topology.tensor_group).cuda()
    topology.sync_parameters(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for tokens in token_batches(dist.get_rank(topology.data_group), dist.get_world_size(topology.data_group)):
        loss = model(tokens.cuda())
        optimizer.zero_grad()
        loss.backward()
        topology.sync_gradients(model)
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
