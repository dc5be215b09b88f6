"""Measures how long it takes to merge the stacks of many ranks: python benchmarks/stacks.py."""

from __future__ import annotations

import time

import msgspec

from dtdebug.live.probe import stack_tree
from dtdebug_taxonomy.model.ranks import Frame, RankState

DEPTH = 22


def states(ranks: int, kinds: int) -> list[RankState]:
    """Return ranks in this number of places, each with separate frame objects, as in records read from files."""
    path = "/usr/lib/python3/site-packages/torch/distributed/distributed_c10d.py"
    rows = []
    for kind in range(kinds):
        frames = [Frame("/home/u/train.py", 10 + i, f"step{i}", "work()") for i in range(DEPTH - 4)]
        frames += [Frame(path, 100 * kind + i, "wait") for i in range(4)]
        rows.append(msgspec.json.encode(RankState(rank=0, stack=tuple(frames))))
    states = [msgspec.json.decode(rows[rank % kinds], type=RankState) for rank in range(ranks)]
    return [msgspec.structs.replace(state, rank=rank) for rank, state in enumerate(states)]


def main() -> None:
    """Print one line for each size."""
    for ranks, kinds in ((512, 3), (16384, 3), (16384, 512), (16384, 16384)):
        given = states(ranks, kinds)
        begin = time.perf_counter()
        found = stack_tree.stack_tree(stack_tree.classes(given))
        merged = time.perf_counter()
        text = stack_tree.to_text(given)
        done = time.perf_counter()
        lines = text.count("\n") + 1
        print(
            f"{ranks:6} ranks x {DEPTH} frames, {kinds:5} places: merged in {(merged - begin) * 1000:6.1f} ms, "
            f"merged and rendered in {(done - merged) * 1000:6.1f} ms, {lines} lines, {len(found.ranks)} ranks"
        )


if __name__ == "__main__":
    main()
