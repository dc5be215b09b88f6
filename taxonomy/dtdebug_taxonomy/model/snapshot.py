"""Types of the state captured at one moment: exception, output, ranks, devices, versions.

Every part is optional. A probe that failed or was late leaves a line in `notes`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal

import msgspec

from dtdebug_taxonomy.model.account import Account, Parting
from dtdebug_taxonomy.model.isolation import IsolationResult
from dtdebug_taxonomy.model.ranks import Frame, RankState, Verdict
from dtdebug_taxonomy.model.training import Late, Violation


class ExceptionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Exception as text and numbers, without a reference to the object."""

    type: str
    """Qualified class name, such as `torch.distributed.DistBackendError`."""
    message: str = ""
    frames: tuple[Frame, ...] = ()
    causes: tuple[ExceptionInfo, ...] = ()
    """`__cause__`, `__context__`, members of a group, and reports of child processes."""
    notes: tuple[str, ...] = ()
    rank: int | None = None
    """Rank that raised, if a launcher reports it (its local rank if only that is known)."""
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
"""Place of a finding in the source: on the line of a stack or in the branch that leads to it, in the function
around that line, or elsewhere in the file."""


class SourceFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Place in a file that a stack names, or in a cell, that a check reports or a message asks to edit."""

    file: str
    """A path, or `cell In[3]`."""
    line: int
    check: str = ""
    """`DT101`; empty for what a message asks for."""
    cause: str = ""
    """Id of the cause that its fix removes."""
    name: str = ""
    """`collective-under-rank-guard`."""
    message: str = ""
    near: Near = "file"
    hint: bool = False
    """True if it is not a fault, but worth knowing."""
    rank: int | None = None
    """Rank whose stack leads there."""
    words: str = ""
    """The line itself."""
    fix: str = ""
    """Effect of its fix, in the imperative."""
    diff: str = ""
    """The fix as a unified diff of the file, if it is known to parse and to remove the finding."""


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """Some lines of a file of the user's, as they are on disk."""

    file: str
    first: int
    """Number of the first line."""
    lines: tuple[str, ...]


class OpenStore(msgspec.Struct, frozen=True, kw_only=True):
    """Rendezvous store of a failed run that is still open in the notebook's kernel."""

    port: int
    cell: int | None = None
    """Number of the cell that failed."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything captured of one failure."""

    situation: str = ""
    """The user's description, in plain words."""
    output: str = ""
    """Program output, or the bounded part of it that was stored."""
    source: str = ""
    """Origin of the output: a path, `-`, or `cell output`."""
    first_lines: tuple[tuple[int, int], ...] = ()
    """(line of `output`, line of the whole) if the output is an excerpt."""
    exception: ExceptionInfo | None = None
    cell: str = ""
    """Source of the failed cell."""
    cells: tuple[str, ...] = ()
    """Sources of the cells that ran before it, latest last: they may contain its imports and definitions."""
    cell_numbers: tuple[int, ...] = ()
    """Numbers of `cells` and, last, of `cell`, as the notebook shows them; empty if unknown."""
    accounts: tuple[Account, ...] = ()
    """Accounts of the exceptions that ended ranks, or the cell."""
    parting: Parting | None = None
    """Test or loop at which the ranks of a hang parted."""
    source_findings: tuple[SourceFinding, ...] = ()
    """Findings of the checks in the files that stacks name."""
    source_read: bool = False
    """True if those files were checked, with findings or without."""
    excerpts: tuple[Excerpt, ...] = ()
    """Lines around the places that accounts name, for a diff of the user's file."""
    ranks: tuple[RankState, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    versions: dict[str, str] = {}
    environment: dict[str, str] = {}
    """Allow-listed variables, secrets masked."""
    command: tuple[str, ...] = ()
    """Command that started the job, secrets masked, if it was observed."""
    verdict: Verdict | None = None
    """Verdict on which rank the others wait for, if the states of several ranks were compared."""
    contrasts: dict[str, tuple[str, str]] = {}
    """Answers from runs of the job with something changed: observation -> (value, how it is known)."""
    isolated: IsolationResult | None = None
    """Responsible parts according to those runs."""
    examined: dict[str, tuple[str, str]] = {}
    """Measurements of `dtdebug doctor` before the run: observation -> (value, how it is known)."""
    watched: tuple[Violation, ...] = ()
    """Invariants violated during training."""
    late: tuple[Late, ...] = ()
    """Ranks that the others waited for during training."""
    open_store: OpenStore | None = None
    """Store of an earlier run that this run has used again."""
    child_ranks: int = 0
    """Child processes that look like ranks."""
    notes: tuple[str, ...] = ()
    later: tuple[Snapshot, ...] = ()
    """Further failures of the same output, each with its part of it: only their order connects them with this one."""

    def true_line(self, line: int) -> int:
        """Return the line of the whole output for a line of the excerpt."""
        begun = bisect_right(self.first_lines, line, key=lambda row: row[0])
        if not begun:
            return line
        first, whole = self.first_lines[begun - 1]
        return line + whole - first


def walk(exception: ExceptionInfo | None, depth: int = 8) -> Iterator[ExceptionInfo]:
    """Yield an exception after its causes, innermost first: a wrapper is the echo of what it carries."""
    if exception is not None and depth:
        for cause in exception.causes:
            yield from walk(cause, depth - 1)
        yield exception
