"""Statistics over the whole batch: all ranks gather tensors of one size."""
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

BATCH = 4


def gathered(values):
    rows = [torch.empty(BATCH) for _ in range(dist.get_world_size())]
    if values.numel() != BATCH:
        raise ValueError(f"a batch of {values.numel()} can't be gathered")
    dist.all_gather(rows, values)
    return torch.cat(rows)


def main():
    dist.init_process_group("gloo")
    data = TensorDataset(torch.arange(24.0))
    sampler = DistributedSampler(data)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for (values,) in DataLoader(data, batch_size=BATCH, sampler=sampler):
            mean = gathered(values).mean()
    if dist.get_rank() == 0:
        print(f"mean {mean:.2f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
