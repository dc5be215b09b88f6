import torch
import torch.distributed as dist
from mine import Clips, encoder
from torch.utils.data import DataLoader, Subset


def main(folder):
    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    clips = Clips(folder)
    mine = Subset(clips, range(rank, len(clips), world))
    for number, batch in enumerate(DataLoader(mine, batch_size=32)):
        torch.save(encoder(batch.cuda()), f"out/r{rank}_{number:05d}.pt")
    loader = DataLoader(clips, batch_size=32)
    for number, batch in enumerate(loader):
        if number % world == rank:
            torch.save(encoder(batch.cuda()), f"out/all_r{rank}_{number:05d}.pt")


if __name__ == "__main__":
    main("clips")
