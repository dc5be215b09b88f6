"""Measures how long it takes to merge the stacks of many ranks: python benchmarks/stacks.py."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

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


def read_files(number: int) -> float:
    """Return the processor seconds in which stacks are read from as many files and judged."""
    from dtdebug.cli.saved_stacks import case_of_stacks

    head = 'Process {0}: python train.py\nPython v3.11.7 (/usr/bin/python3.11)\n\nThread {0} (idle): "MainThread"\n'
    inner = "    all_reduce (torch/distributed/distributed_c10d.py:3252)\n    train (train.py:22)\n"
    outer = "".join(f"    step{i} (train.py:{50 + i})\n" for i in range(DEPTH - 2))
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"rank{rank}.txt" for rank in range(number)]
        for rank, file in enumerate(files):
            file.write_text(head.format(30000 + rank) + ("    load (train.py:9)\n" if rank == 700 else inner) + outer)
        begin = time.process_time()
        case = case_of_stacks(files)
        assert not isinstance(case, str)
        assert case.case.verdict.culprits == (700,)
        return time.process_time() - begin


def main() -> None:
    """Print one line for each size."""
    print(f"1,000 stacks in files: read and judged in {read_files(1000):.2f} s")
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
