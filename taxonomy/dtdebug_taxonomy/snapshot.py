"""The types of what was captured at one moment: exception, output, ranks, devices, versions.

Every part is optional. A probe that failed or was late leaves a line in `notes`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal

import msgspec

from dtdebug_taxonomy.isolated import Isolated
from dtdebug_taxonomy.ranks import Frame, RankState, Verdict
from dtdebug_taxonomy.watched import Late, Violation


class ExceptionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An exception as text and numbers; holds no reference to the object."""

    type: str
    """Qualified class name, such as `torch.distributed.DistBackendError`."""
    message: str = ""
    frames: tuple[Frame, ...] = ()
    causes: tuple[ExceptionInfo, ...] = ()
    """`__cause__`, `__context__`, members of a group, and what child processes reported."""
    notes: tuple[str, ...] = ()
    rank: int | None = None
    """Rank that raised, where a launcher reports it (`local rank` if it knows no more)."""
    pid: int | None = None
    exit_code: int | None = None
    signal: str = ""
    """Name of the signal that ended a process, such as `SIGKILL`."""


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One device as NVML reports it; memory in bytes."""

    index: int
    name: str = ""
    uuid: str = ""
    memory_total: int = 0
    memory_used: int = 0
    utilization: int | None = None
    """Percent of the last sample period."""
    processes: tuple[tuple[int, int], ...] = ()
    """(pid, bytes) of each compute process."""


Near = Literal["line", "function", "file"]
NEAR: tuple[Near, ...] = ("line", "function", "file")
"""Where a finding in the source stands: on the line of a stack or in the branch that leads to it, in the function
around that line, or elsewhere in the file."""


class SourceFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What a check sees in a file that a stack names."""

    file: str
    line: int
    check: str
    """`DT101`."""
    name: str = ""
    """`collective-under-rank-guard`."""
    message: str = ""
    near: Near = "file"
    hint: bool = False
    """No fault, but something to know."""
    rank: int | None = None
    """Whose stack leads there."""
    words: str = ""
    """The line itself."""
    fix: str = ""
    """What its fix does, as an order."""
    diff: str = ""
    """The fix as a unified diff of the file, where it is known to parse and to silence the finding."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """All that was captured of one failure."""

    situation: str = ""
    """What the user tells, in plain words."""
    output: str = ""
    """Program output, or the bounded part of it that was kept."""
    source: str = ""
    """Where the output is from: a path, `-`, or `cell output`."""
    first_lines: tuple[tuple[int, int], ...] = ()
    """(line of `output`, line of the whole) where output is an excerpt."""
    exception: ExceptionInfo | None = None
    cell: str = ""
    """Source of the failed cell."""
    cells: tuple[str, ...] = ()
    """Sources of the cells that ran before it, the latest last: its imports and definitions may stand there."""
    source_findings: tuple[SourceFinding, ...] = ()
    """What the checks see in the files that stacks name."""
    ranks: tuple[RankState, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    versions: dict[str, str] = {}
    environment: dict[str, str] = {}
    """Allow-listed variables, secrets masked."""
    command: tuple[str, ...] = ()
    """How the job was started, secrets masked, where that was seen."""
    verdict: Verdict | None = None
    """Which rank the others wait for, where the state of several ranks was compared."""
    contrasts: dict[str, tuple[str, str]] = {}
    """What runs of the job with something changed have answered: observation -> (value, how it is known)."""
    isolated: Isolated | None = None
    """What those runs have shown to be responsible."""
    examined: dict[str, tuple[str, str]] = {}
    """What `dtdebug doctor` measured before the run: observation -> (value, how it is known)."""
    watched: tuple[Violation, ...] = ()
    """What did not hold while it trained."""
    late: tuple[Late, ...] = ()
    """Ranks that the others waited for while it trained."""
    child_ranks: int = 0
    """Child processes that look like ranks."""
    notes: tuple[str, ...] = ()
    later: tuple[Snapshot, ...] = ()
    """Further failures of the same output, each with its part of it: nothing connects them with this one but order."""

    def true_line(self, line: int) -> int:
        """The line of the whole output for a line of the excerpt."""
        begun = bisect_right(self.first_lines, line, key=lambda row: row[0])
        if not begun:
            return line
        first, whole = self.first_lines[begun - 1]
        return line + whole - first


def walk(exception: ExceptionInfo | None, depth: int = 8) -> Iterator[ExceptionInfo]:
    """The innermost causes first: a wrapper is the echo of what it carries."""
    if exception is not None and depth:
        for cause in exception.causes:
            yield from walk(cause, depth - 1)
        yield exception
