import torch.distributed
import os

from samplers import PackedBatchSampler


def build(lengths, world_size, local_rank):
    return PackedBatchSampler(lengths=lengths, num_replicas=world_size, rank=torch.distributed.get_rank())  # dt: DT218


def main(lengths):
    local_rank = int(os.environ["LOCAL_RANK"])
    return build(lengths, int(os.environ["WORLD_SIZE"]), local_rank)
