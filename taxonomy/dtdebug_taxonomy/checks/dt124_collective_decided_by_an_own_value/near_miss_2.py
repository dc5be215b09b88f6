import argparse
import glob
import os

import torch
import torch.distributed as dist

from encoder import load_encoder, read_clip


def list_shard(root, rank, world_size):
    files = sorted(glob.glob(os.path.join(root, "*.mp4")))
    if len(files) % world_size:
        files = files[: len(files) - len(files) % world_size]
    return files[rank::world_size]


def gather_rows(rows, world_size):
    out = [torch.zeros_like(rows) for _ in range(world_size)]
    dist.all_gather(out, rows)
    return torch.cat(out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("--out", default="features.pt")
    args = parser.parse_args()
    dist.init_process_group("nccl")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    encoder = load_encoder().cuda().eval()
    mine = list_shard(args.root, rank, world_size)
    features = []
    with torch.no_grad():
        for path in mine:
            clip = read_clip(path).cuda(non_blocking=True)
            row = encoder(clip.unsqueeze(0)).mean(0)
            features.append(gather_rows(row, world_size).cpu())
    if rank == 0:
        torch.save(torch.cat(features), args.out)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
