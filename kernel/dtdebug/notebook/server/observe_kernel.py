"""Inspects one kernel of this server from outside, and the ranks below it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from dtdebug.live.probe.processes import ranks_below
from dtdebug.notebook import cell_journal, kernel_death, leftover_ranks, leftovers_without_agent, render_ranks
from dtdebug.notebook.attach_client import from_outside
from dtdebug.notebook.cheap_poll import glance, resting
from dtdebug.notebook.panel_view import view
from dtdebug.notebook.server.kernels import KernelProcess, Kernels, LookRequest
from dtdebug.notebook.server.report import markdown
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.model.ranks import RankState
from dtdebug_taxonomy.model.ranks_view import View

_UNARMED = "dtdebug is not loaded in this kernel, so only stacks are known: run %load_ext dtdebug before the next run"
_RESTING = (
    "a rank that uses no processor may also wait for its GPU, the network or a disk: without records stacks alone tell"
)
_BY_STACKS = 0.6
"""Maximum confidence of a verdict without records: stacks show where ranks are, not which collective they started."""
_CHANCE = "a job that moves may be found twice in the same places: look again"
_ENDED = "the kernel's process has ended; after a restart, %load_ext dtdebug and %dtdebug tell what it was doing"
_KERNELS = 64
_folders: dict[KernelProcess, Path] = {}
"""Folders of armed kernels found so far; finding one reads the journals of all kernels."""


class LookReply(msgspec.Struct, frozen=True):
    """Reply to a request to look."""

    view: View
    text: str
    report: str
    """Complete report as Markdown, for a file."""


def look_at_kernel(process: KernelProcess, asked: LookRequest) -> bytes:
    """Return the JSON of an observation of a kernel and its ranks."""
    folder, entry = _find_armed(process)
    pid = entry.pid if entry else process.pid
    notes = (_ENDED,) if not process.alive else (_UNARMED,) if entry is None else ()
    ranks: tuple[RankState, ...] = ()
    if asked.kind == "glance" or not process.alive:
        shown = glance(folder, entry, pid)
        text = f"dtdebug: {shown.line or 'no hang is seen'}"
    else:
        seen = from_outside(pid, folder, entry, asked.kind, asked.timeout)
        rested = resting(seen.ranks, entry, pid) if entry is None else 0.0
        seen = msgspec.structs.replace(seen, resting=rested)
        if entry is None and (verdict := seen.verdict) is not None and verdict.kind not in ("none", "dead"):
            verdict = msgspec.structs.replace(verdict, confidence=min(verdict.confidence, _BY_STACKS))
            seen, notes = msgspec.structs.replace(seen, verdict=verdict), (*notes, _RESTING)
        shown, text, ranks = view(seen, road="outside", entry=entry), render_ranks.plain_text(seen), seen.ranks
        if entry is None and shown.hangs and not rested:
            shown, notes = msgspec.structs.replace(shown, hangs=None, line=""), (*notes, _CHANCE)
    shown = msgspec.structs.replace(shown, notes=(*shown.notes, *notes))
    text = "\n".join((text, *(f"note: {note}" for note in notes)))
    return msgspec.json.encode(LookReply(shown, text, markdown(shown, text, ranks)))


class LeftoversReply(msgspec.Struct, frozen=True):
    """Reply about ranks of earlier cells that still run."""

    left: list[CellRanks]


class CellRanks(msgspec.Struct, frozen=True):
    """Ranks of one cell, or the death of the kernel, which has no processes to end."""

    line: str
    pids: tuple[int, ...]


class EndReply(msgspec.Struct, frozen=True):
    """Reply to a request to end ranks."""

    ended: list[int]
    text: str


def left_behind(process: KernelProcess, kernels: Kernels, *, idle: bool) -> bytes:
    """Return the JSON of ranks of earlier cells that still run, including those from before a restart of the kernel.

    A kernel that died in a cell comes first, until a kernel that took its place has loaded the extension.
    """
    death = kernel_death.find_unreported(process.file)
    return _encode_leftovers(_find_leftovers(process, kernels, idle=idle), death)


def list_abandoned(kernels: Kernels) -> bytes:
    """Return the JSON of the ranks left by ended kernels outside of this collection."""
    return _encode_leftovers(_find_abandoned(kernels))


def end_abandoned(kernels: Kernels, pids: Sequence[int]) -> bytes:
    """End those of the processes that `abandoned` names; return the JSON of the result."""
    allowed = {pid for each in _find_abandoned(kernels) for pid in each.pids}
    return msgspec.json.encode(EndReply(*leftover_ranks.end_ranks(pids, allowed - {os.getpid()}, kernel=False)))


def end(process: KernelProcess, kernels: Kernels, pids: Sequence[int]) -> bytes:
    """End those that are ranks of this kernel, now or before its restart; return the JSON of the result."""
    _, entry = _find_armed(process)
    kernel = entry.pid if entry else process.pid
    allowed = {
        *ranks_below(kernel),
        *(pid for each in _find_leftovers(process, kernels, idle=True) for pid in each.pids),
    }
    return msgspec.json.encode(
        EndReply(*leftover_ranks.end_ranks(pids, allowed - {*kernels.pids, kernel, os.getpid()}))
    )


def _find_leftovers(process: KernelProcess, kernels: Kernels, *, idle: bool) -> list[leftover_ranks.LeftoverRanks]:
    """Find ranks by the journals; for kernels without a journal, by the operating system."""
    _, entry = _find_armed(process)
    return [
        *leftover_ranks.find_leftovers(process.file),
        *leftovers_without_agent.find_leftovers(process.pid, idle=idle and entry is None, kernels=kernels.pids),
    ]


def _find_abandoned(kernels: Kernels) -> list[leftover_ranks.LeftoverRanks]:
    return [*leftover_ranks.find_abandoned(kernels.files), *leftovers_without_agent.find_abandoned(kernels.pids)]


def _encode_leftovers(found: Sequence[leftover_ranks.LeftoverRanks], death: str = "") -> bytes:
    rows = [CellRanks(death, ())] if death else []
    return msgspec.json.encode(LeftoversReply([*rows, *(CellRanks(each.line, each.pids) for each in found)]))


def _find_armed(process: KernelProcess) -> tuple[RunFolder | None, cell_journal.LastCell | None]:
    """Return the folder of an armed kernel and the content of its journal."""
    known = _folders.get(process)
    entry = cell_journal.read_journal(known) if known else None
    if entry is None or not entry.running:  # after unloading and loading it has another folder
        known, entry = _search_journals(process)
    if known is None:
        return None, None
    _folders[process] = known
    while len(_folders) > _KERNELS:
        _folders.pop(next(iter(_folders)), None)
    return RunFolder(known), entry


def _search_journals(process: KernelProcess) -> tuple[Path | None, cell_journal.LastCell | None]:
    """Search the folders of all kernels for the one of this kernel.

    The kernel may run below the process that the server started: a wrapper such as `conda run` stays above it.
    """
    found = [(path, entry) for path, entry in cell_journal.entries() if entry.kernel == process.file]
    own = [row for row in found if row[1].pid == process.pid]
    below = _below(process.pid) if found and not own else ()
    return next(iter([*own, *(row for row in found if row[1].pid in below)]), (None, None))


def _below(pid: int) -> list[int]:
    import psutil

    with suppress(psutil.Error):
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    return []
