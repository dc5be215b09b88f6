"""Measures how the cost of each reader grows with hostile input: processor seconds and memory for n and for 4n.

    python benchmarks/held.py [PART OF A NAME] [--share N]

Sizes are those of an attack divided by N (16); a ratio of seconds far above 4 is a defect, and so is memory that grows
without end. The kinds are those of tests/hostile_kinds.py.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import hostile_kinds as kinds

GROWTH = 4
LINEAR = 2 * GROWTH
"""Ratio from which a row is marked; rows below `_SHORT` seconds beyond those of an empty command are not judged."""
_SHORT = 0.5


class Cost(NamedTuple):
    """What a command has taken, with all its children."""

    seconds: float
    mebibytes: float
    status: int


def cost(words: list[str], folder: Path) -> Cost:
    """Run one command and return its cost."""
    with (folder / "said").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "dtdebug", *words], stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=folder
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, process.returncode)


def of_kind(name: str, size: int) -> Cost:
    """Return the cost of one kind at one size."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "given")
        folder.mkdir()
        words = kinds.KINDS[name][0](random.Random(zlib.crc32(name.encode())), folder, size)
        return cost(words, folder)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--share", type=int, default=16)
    options = parser.parse_args()
    empty = cost(["--version"], Path(tempfile.gettempdir())).seconds
    print("| kind | n | s for n | s for 4n | ratio | MiB for n | MiB for 4n |\n" + "| --- " * 7 + "|")
    for name, (_, least, most) in kinds.KINDS.items():
        if options.name not in name or most <= least:
            continue
        size = max(1, most // options.share)
        small, large = of_kind(name, size), of_kind(name, GROWTH * size)
        ratio = max(large.seconds - empty, 0.01) / max(small.seconds - empty, 0.01)
        mark = " !" if ratio > LINEAR and large.seconds - empty > _SHORT else ""
        print(
            f"| {name} | {size:,} | {small.seconds:.1f} | {large.seconds:.1f} | {ratio:.1f}{mark} "
            f"| {small.mebibytes:.0f} | {large.mebibytes:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
