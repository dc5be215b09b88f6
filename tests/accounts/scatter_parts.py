"""Distributes the rows of a table."""
import argparse

import torch
import torch.distributed as dist


def read_options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=12)
    parser.add_argument("--parts", type=int, default=3)
    return parser.parse_args()


def cut(table, parts):
    return list(table.chunk(parts))


def main():
    options = read_options()
    dist.init_process_group("gloo")
    table = torch.arange(options.rows * 4).reshape(options.rows, 4)
    pieces = cut(table, options.parts)
    mine = torch.empty_like(pieces[0])
    dist.scatter(mine, pieces if dist.get_rank() == 0 else None, src=0)
    print(mine.sum())


main()
