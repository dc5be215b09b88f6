"""What launchers put before a line of output to tell which rank printed it."""

from __future__ import annotations

import re

_PREFIX = re.compile(
    r"\[(?:rank|default) ?(\d{1,7})\]\s?:? ?"  # torch, torchrun
    r"|\[(\d{1,7})\]\s?: ?"
    r"|\[(?:\d{1,7},)?(\d{1,7})\]<std(?:out|err|diag)>:?"  # mpirun, horovodrun; what follows is the line as it was
    r"|\s{0,6}(\d{1,7}): "  # srun --label; not the hours of a clock
    r"|\(RayTrainWorker[^)]{0,40}rank=(\d{1,7})[^)]{0,40}\) ?"
)
_LONGEST = 120
"""Characters of a line in which a prefix ends."""


def parted(line: str) -> tuple[int | None, str]:
    """The rank that a line's prefix names, and the line without it."""
    found = _PREFIX.match(line[:_LONGEST])
    return (next(int(g) for g in found.groups() if g), line[found.end() :]) if found else (None, line)


def rank_of(line: str) -> int | None:
    """The rank that a line's prefix names (`[rank3]:`, `[default3]:`, `3: `, `[1,3]<stderr>:`)."""
    return parted(line)[0]
