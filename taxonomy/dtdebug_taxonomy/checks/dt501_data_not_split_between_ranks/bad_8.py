import os

import torch
import torch.distributed as dist
from mine import Clips, encoder
from torch.utils.data import DataLoader

local_rank = int(os.environ["LOCAL_RANK"])


def main(folder):
    dist.init_process_group("nccl")
    torch.cuda.set_device(local_rank)
    clips = Clips(folder)
    loader = DataLoader(clips, batch_size=32, num_workers=8)  # dt: DT501
    for number, batch in enumerate(loader):
        torch.save(encoder(batch.cuda()), f"out/r{local_rank}_{number:05d}.pt")
    dist.barrier()


if __name__ == "__main__":
    main("clips")
