"""Rank 0 hands out rows of a table; the others work on them."""

import argparse

import torch
import torch.distributed as dist


def starts(total, parts):
    step = total // parts
    return list(range(0, total, step))


def bounds(total, parts):
    first = starts(total, parts)
    return list(zip(first, first[1:] + [total]))


class Dealer:
    def __init__(self, table, world):
        self.table = table
        self.world = world

    def deal(self):
        width = 0
        parts = []
        for first, last in bounds(len(self.table), self.world):
            part = self.table[first:last]
            width = max(width, len(part))
            parts.append(part)
        return [torch.nn.functional.pad(p, (0, 0, 0, width - len(p))) for p in parts]


def receive(shape):
    rank = dist.get_rank()
    out = torch.empty(shape)
    parts = None
    if rank == 0:
        table = torch.arange(21, dtype=torch.float32).reshape(7, 3)
        parts = Dealer(table, dist.get_world_size()).deal()
    dist.scatter(out, parts, src=0)
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rows = receive((args.rows, 3))
    total = rows.sum()
    dist.reduce(total, 0)
    if dist.get_rank() == 0:
        print("total", total.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
