"""Tables of the processes on GPUs, as `nvidia-smi` prints and people paste them."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.pattern_matcher import clip_lines

_ROW = lazy_re(
    r"(?m)^[>|\s]{0,12}(?P<gpu>\d{1,2})\s{1,12}(?:(?:N/A|\d{1,4})\s{1,8}){0,2}(?P<pid>\d{2,9})\s{1,12}C(?:\+G)?\s{1,8}"
    r"(?P<name>\S{1,200})[^|\n]{0,120}?\s(?P<size>\d{1,7})\s?MiB\b"
)
_DEVICE = lazy_re(r"(?m)^[>|\s]{0,12}(?P<gpu>\d{1,2})\s{1,6}[A-Z][\w .-]{1,40}\s(?:On|Off|N/A)\s{0,8}\|")
_CONTEXT = 1_536
"""Mebibytes up to which a process may hold no more than a context."""


class _Process(NamedTuple):
    gpu: int
    pid: int
    name: str
    size: int


def device_usage(snapshot: Snapshot) -> tuple[str, str] | None:
    """Return how the processes of a pasted table use the devices; None if it shows nothing unusual, or is none."""
    text = clip_lines(f"{snapshot.situation}\n{snapshot.output}")
    if "MiB" not in text:
        return None
    rows = [_Process(int(m["gpu"]), int(m["pid"]), m["name"], int(m["size"])) for m in _ROW.finditer(text)]
    by_pid: dict[int, dict[int, int]] = defaultdict(dict)
    for row in rows:
        by_pid[row.pid][row.gpu] = row.size
    spread = {pid: min((size, gpu) for gpu, size in held.items()) for pid, held in by_pid.items() if len(held) > 1}
    extra = {pid: gpu for pid, (size, gpu) in spread.items() if size <= _CONTEXT}
    if extra:
        first = Counter(extra.values()).most_common(1)[0][0]
        pids = [pid for pid, gpu in extra.items() if gpu == first]
        own = sorted({gpu for pid in pids for gpu in by_pid[pid]} - {first})
        which = f"process {pids[0]} is" if len(pids) == 1 else f"{len(pids)} processes are"
        return "extra_contexts", f"{which} on GPU {', '.join(map(str, own))} and on GPU {first} too"
    used, names = {row.gpu for row in rows}, {row.name for row in rows}
    idle = {int(m["gpu"]) for m in _DEVICE.finditer(text)} - used
    if len(by_pid) > 1 and len(used) == 1 and len(names) == 1 and idle:
        return "all_ranks_on_one", f"all {len(by_pid)} processes are on GPU {used.pop()}"
    return None
