"""Reads stacks that were saved as text: by `py-spy dump`, or by faulthandler."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from dtdebug.storage import safe_open
from dtdebug_taxonomy.model.ranks import MOST_RANKS, Frame, RankState
from dtdebug_taxonomy.stacks.wait_operations import operation

_LIMIT = 16 << 20
_FRAMES = 256
_PROCESS = re.compile(r"Process (?P<pid>\d{1,9}): ")
_THREAD = re.compile(r'Thread (?:0x)?[0-9a-fA-F]{1,16} \([^)]{1,40}\)(?:: "(?P<name>[^"]{0,100})")?\s*\Z')
_FRAME = re.compile(r"\s{2,8}(?P<function>\S.{0,300}) \((?P<file>[^()]{1,500}):(?P<line>\d{1,9})\)\s*\Z")
_SHORTENED = re.compile(r"(?:torch|(?:pytorch_)?lightning|accelerate|deepspeed|transformers|ray|horovod)/")
"""Path of a library as py-spy prints it, without the folder that it is installed in."""
_TRACED = re.compile(r"(?:Current thread|Thread) 0x[0-9a-f]{4,16}.{0,80} \(most recent call first\):")
_TRACED_FRAME = re.compile(r'  File "(?P<file>[^"]{1,500})", line (?P<line>\d{1,9}) in (?P<function>\S.{0,300})')
_RANK = re.compile(r"(?:rank|worker)[-_.]?(?P<rank>\d{1,7})|(?:\A|[-_.])r?(?P<bare>\d{1,7})\Z", re.IGNORECASE)


def read_stacks(files: Sequence[Path]) -> list[RankState]:
    """Return the main thread of each process; ranks are those of the files' names, else the order of the stacks.

    Raises:
        OSError: a file can't be read.

    """
    found: list[tuple[int | None, int | None, tuple[Frame, ...]]] = []
    for file in files:
        stacks = list(_stacks(safe_open.read_text(file, _LIMIT)))
        named = _RANK.search(file.stem) if len(stacks) == 1 else None
        rank = int(named["rank"] or named["bare"]) if named is not None else None
        found += [(rank, pid, stack) for pid, stack in stacks]
    ranks = [rank for rank, _, _ in found]
    if None in ranks or len({*ranks}) < len(ranks) or max((r or 0 for r in ranks), default=0) >= MOST_RANKS:
        ranks = [*range(len(found))]
    return [
        RankState(rank=rank, pid=pid, alive=True, stack=stack, pending=operation(stack), world_size=len(found))
        for rank, (_, pid, stack) in zip(ranks, found, strict=True)
    ]


def _stacks(text: str) -> Iterator[tuple[int | None, tuple[Frame, ...]]]:
    """Yield process id, if known, and the main thread's stack of each process, innermost frame last."""
    pid: int | None = None
    threads: list[list[Frame]] = []
    named = -1
    """Index of the thread called MainThread."""
    for line in text.splitlines():
        if found := _PROCESS.match(line):
            if threads:
                yield pid, _main(threads, named)
            pid, threads, named = int(found["pid"]), [], -1
        elif found := _THREAD.match(line):
            if found["name"] == "MainThread":
                named = len(threads)
            threads.append([])
        elif _TRACED.match(line):
            threads.append([])
        elif threads and (found := _FRAME.match(line) or _TRACED_FRAME.match(line)):
            function = found["function"].rpartition(".")[2]
            file = found["file"]
            file = f"site-packages/{file}" if _SHORTENED.match(file) else file
            threads[-1].append(Frame(file, int(found["line"]), function))
    if threads:
        yield pid, _main(threads, named)


def _main(threads: Sequence[Sequence[Frame]], named: int) -> tuple[Frame, ...]:
    """Return the main thread: the one so called, else the last one, which faulthandler writes for the oldest."""
    return tuple(reversed(threads[named][:_FRAMES]))
