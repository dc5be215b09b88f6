"""Nothing is wrong: FSDP2, accumulation, a checkpoint by rank 0."""

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main():
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters())
    data = TensorDataset(torch.randn(30, 8), torch.randint(0, 2, (30,)))
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data), num_workers=1)
    for step, (x, y) in enumerate(loader):
        (torch.nn.functional.cross_entropy(model(x), y) / 2).backward()
        if step % 2:
            optimizer.step()
            optimizer.zero_grad()
    weights = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    if dist.get_rank() == 0:
        torch.save(weights, "last.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
