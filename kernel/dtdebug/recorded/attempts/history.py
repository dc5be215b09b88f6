"""Finds the attempts of one job: in one log with restarts, in logs that follow each other, in a folder of runs."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from msgspec.structs import replace

from dtdebug.privacy.sanitize import plain
from dtdebug.recorded.attempts.attempt import Attempt, attempt_of
from dtdebug.recorded.job_logs.rank_from_path import of_paths
from dtdebug.recorded.job_logs.timestamps import when, year_of
from dtdebug.recorded.log_files import excerpt as log_excerpt
from dtdebug.recorded.log_files.sources import find_logs
from dtdebug.storage import safe_open
from dtdebug_taxonomy.logs.log import Log, read_output
from dtdebug_taxonomy.logs.split_failures import part_of
from dtdebug_taxonomy.model.snapshot import Snapshot

_FILES, _SIZE, _MOST = 256, 128 << 20, 64
"""Maximum number of logs and bytes that are read as attempts, and of attempts."""
_ENDS = 64 << 10
"""Bytes at both ends of a log searched for its times."""
_NAMED = re.compile(r"(?i)(?:attempt|try|retry|restart|run)[-_. ]?(\d{1,6})\b")
_KINDS = ("program", "machine", "scheduler", "unknown", "none")
"""Kinds of ends, the most telling first: of several ranks, those that only lost a peer come later."""


def attempts_of(paths: Sequence[str]) -> tuple[Attempt, ...]:
    """Return the attempts in the order of time; empty if the logs are not those of several attempts."""
    sources, _ = find_logs(list(paths))
    files = [s.path for s in sources if s.path != "-" and not s.member and Path(s.path).is_file()]
    if not 0 < len(files) <= _FILES or len(files) != len(sources):
        return ()
    if not is_small(files):
        return ()
    if len(files) == 1:
        return in_one_log(read(files[0]))
    groups = _order(_group(files))
    return tuple(_of_group(name, group) for name, group in groups[:_MOST]) if len(groups) > 1 else ()


def is_small(files: Sequence[str]) -> bool:
    """True if files are small enough to be read as attempts."""
    return sum(Path(file).stat().st_size for file in files) <= _SIZE


def read(file: str) -> Snapshot:
    """Return the excerpt of a log as a snapshot."""
    kept = log_excerpt.read_path(Path(file))
    return Snapshot(output=plain(kept.text), source=file, first_lines=kept.first_lines)


def in_one_log(snapshot: Snapshot) -> tuple[Attempt, ...]:
    """Return the attempts that restarts in one log separate; several agents report one restart."""
    log = read_output(snapshot)
    cuts = [0]
    for place in log.first:
        if place and _has_run(log, cuts[-1], place):
            cuts.append(place)
    if len(cuts) == 1:
        return ()
    parts = [part_of(snapshot, log, begin, end) for begin, end in pairwise((*cuts, len(log.lines)))]
    return tuple(attempt_of(part, f"attempt {number}") for number, part in enumerate(parts[:_MOST], 1))


def _has_run(log: Log, begin: int, end: int) -> bool:
    """True if a rank raised or trained between two restarts."""
    if any(begin <= r.index < end for r in log.events.raised):
        return True
    return any(begin <= place < end for steps in log.events.steps.values() for place in steps)


def _group(files: Sequence[str]) -> dict[str, list[str]]:
    """Return name -> logs of one attempt: by a number in their path, by their folder, else each log for itself."""
    named: dict[str, list[str]] = defaultdict(list)
    for file in files:
        found = _NAMED.findall(str(Path(file).parent)) or _NAMED.findall(Path(file).name)
        named[f"attempt {found[-1]}" if found else ""].append(file)
    if len(named) > 1 and "" not in named:
        return named
    folders: dict[str, list[str]] = defaultdict(list)
    for file in files:
        folders[str(Path(file).parent)].append(file)
    if len(folders) > 1:
        return {Path(folder).name: group for folder, group in folders.items()}
    return {Path(file).name: [file] for file in files}


def _order(groups: dict[str, list[str]]) -> list[tuple[str, list[str]]]:
    """Return the groups in the order of time; empty if any two of them ran at the same time."""
    spans = {name: [_span(file) for file in group] for name, group in groups.items()}
    rows = []
    for name, times in spans.items():
        known = [(begin, end) for begin, end in times if begin is not None and end is not None]
        if not known:
            return []
        rows.append((min(begin for begin, _ in known), max(end for _, end in known), name))
    rows.sort()
    if any(end > begin for (_, end, _), (begin, _, _) in pairwise(rows)):
        return []
    return [(name, groups[name]) for _, _, name in rows]


def _span(file: str) -> tuple[float | None, float | None]:
    """Return the first and the last time in a log."""
    try:
        with safe_open.log(file) as log:
            begin = log.read(_ENDS).split(b"\n")
            log.seek(max(os.fstat(log.fileno()).st_size - _ENDS, 0))
            end = log.read().split(b"\n")
    except OSError:
        return None, None
    year = year_of(begin) or 1970
    first = next((time for raw in begin if (time := when(raw, year)) is not None), None)
    last = next((time for raw in reversed(end) if (time := when(raw, year)) is not None), None)
    return first, last


def _of_group(name: str, files: Sequence[str]) -> Attempt:
    """Return the attempt of one or several logs: its failure is that of the rank that failed first."""
    owners = of_paths(list(files))
    rows = []
    for file, owner in zip(files, owners, strict=True):
        row = attempt_of(read(file), name)
        rank = owner.rank if row.rank is None and row.failed else row.rank
        rows.append(replace(row, rank=rank, host=row.host or (owner.host if row.failed else "")))
    first = min(rows, key=lambda row: (_KINDS.index(row.kind), row.ended is None, row.ended or 0.0))
    steps = [row.step for row in rows if row.step is not None]
    saved = max((row for row in rows if row.saved is not None), key=lambda row: row.saved or 0, default=None)
    hosts = {host for row in rows for host in row.hosts} | {owner.host for owner in owners if owner.host}
    return replace(
        first,
        hosts=tuple(sorted(hosts)),
        begun=min((row.begun for row in rows if row.begun is not None), default=None),
        step=max(steps, default=None),
        saved=saved.saved if saved is not None else None,
        saved_time=saved.saved_time if saved is not None else None,
        completed=any(row.completed for row in rows) and not first.failed,
    )
