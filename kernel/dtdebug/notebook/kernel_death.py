"""Describes how the kernel of a notebook died while it ran a cell, and which of its ranks outlived it."""

from __future__ import annotations

import ast
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from dtdebug.live.probe.processes import is_killed_for_memory
from dtdebug.notebook import cell_journal
from dtdebug.notebook.leftover_ranks import find_leftovers
from dtdebug.privacy.sanitize import one_line, plain
from dtdebug.storage import state_dir
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.model.ranks import ranges

_CRASH_LIMIT = 16_000
_FATAL = "Fatal Python error:"
_LINE, _PIDS = 200, 16
_ENDS = ("os._exit", "os.abort")
_UNRECORDED = "it left no crash report: SIGKILL, os._exit and the out-of-memory killer leave none"


def death_lines(kernel: str) -> list[str]:
    """Return what a kernel of that name should know of its predecessor: its death, and ranks that still run."""
    found = cell_journal.find_dead_kernel(kernel)
    lines = [f"{death_sentence(*found)}. `%dtdebug` shows what is known of it."] if found is not None else []
    left = find_leftovers(kernel)
    for each in left:
        named = f"process{'es' if len(each.pids) > 1 else ''} {ranges(sorted(each.pids), _PIDS)}"
        lines.append(f"dtdebug: {each.line} ({named})")
    return [*lines, "dtdebug: %dtdebug end ends them"] if left else lines


def find_unreported(kernel: str) -> str:
    """Return the sentence on the death of a kernel of that name that no later one has replaced or reported, or ""."""
    newest = next((entry for _, entry in cell_journal.entries() if entry.kernel == kernel), None)
    found = cell_journal.find_dead_kernel(kernel)
    return death_sentence(*found) if found is not None and found[1] == newest else ""


def death_sentence(folder: Path, entry: cell_journal.LastCell) -> str:
    """Return `The kernel died while cell In[3] ran: Fatal Python error: Segmentation fault`."""
    how = f"; {_UNRECORDED}"
    if is_killed_for_memory(entry.pid, time.time() - entry.begun):
        how = ": the out-of-memory killer ended it"
    elif fatal := next((row for row in crash_report(folder, entry).splitlines() if row.startswith(_FATAL)), ""):
        how = f": {one_line(fatal, _LINE)}"
    elif ends := _ending_line(entry.source):
        how = f"; its line {ends[0]} is `{ends[1]}`, which leaves no crash report"
    return f"The kernel died while cell In[{entry.number}] ran{how}"


@lru_cache(maxsize=4)
def _ending_line(cell: str) -> tuple[int, str] | None:
    """Return the first line of a cell that, once reached, ends its process without a report."""
    from dtdebug_taxonomy.source.python.lenient_parser import parse_program
    from dtdebug_taxonomy.source.python.names import dotted_name

    def is_end(call: ast.Call) -> bool:
        name, first = dotted_name(call.func), next(iter(call.args), None)
        is_own = isinstance(first, ast.Call) and dotted_name(first.func) == "os.getpid"
        return name in _ENDS or (name == "os.kill" and is_own)

    nodes = ast.walk(parse_program(cell).tree)
    line = min((node.lineno for node in nodes if isinstance(node, ast.Call) and is_end(node)), default=0)
    return (line, one_line(cell.split("\n")[line - 1].strip(), _LINE)) if line else None


def crash_report(folder: Path, entry: cell_journal.LastCell) -> str:
    """Return the stacks that the kernel wrote when it crashed, or ""."""
    crash = b""
    with suppress(OSError, StopIteration):
        crash = state_dir.read_start(next(RunFolder(folder).stacks.glob(f"{entry.pid}-*.txt")), _CRASH_LIMIT)
    return plain(crash.decode(errors="replace"))
