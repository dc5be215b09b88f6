"""Determines the owner of a log from its path: rank, local rank, attempt, host. Only some numbers are ranks."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

_RANK = re.compile(r"(?i)(?<![a-z])(?:global[._-]?)?rank[._=-]{0,2}(\d{1,7})(?!\d)")
_LOCAL = re.compile(r"(?i)local[._-]?rank[._=-]{0,2}(\d{1,5})(?!\d)")
_TORCHRUN = re.compile(r"attempt_(\d{1,4})[/\\](\d{1,5})[/\\](?:std(?:err|out)|both)\.log")
_HOST = re.compile(r"(?<![A-Za-z0-9])([A-Za-z]{1,30}(?:-[A-Za-z]{1,30}){0,4}-?\d{1,6})(?!\d)(?=[-._/:]|$)")
_NO_HOST = re.compile(
    r"(?i)(?:rank|local|task|worker|proc|process|job|slurm|log|logs|out|err|std|attempt|run|part|train|step|epoch|v|x|t|p|w)"
    r"-?\d{1,18}"
)
"""Words with a number that are not host names, unless the number shows it."""
_ONE_HOST = re.compile(
    r"(?i)-|[a-z]\d{1,4}[a-z]|(?:node|host|gpu|dgx|hgx|compute|worker|server|machine|instance|nid|vm|pod)\d"
)
"""Pattern of a host name if there is no other log to compare with; `llama70` may be a model."""
_KERNEL = re.compile(r"(?i)dmesg|syslog|kern(?:el)?[._-]?log|journal|messages|kmsg|fabric[._-]?manager")
_JOB_ID = re.compile(r"\d{5,}-")
_LABEL = re.compile(r"(?i)^(?:(?:pre)?train(?:ing)?-|slurm-|logs?-|job-|run-|out-|err-){1,4}(?=[A-Za-z])")
_ENDING = re.compile(r"(?i)(?:\.(?:log|txt|out|gz|zst|xz|bz2|\d{1,3})){1,4}$")
_NAME = re.compile(r"[A-Za-z](?:[A-Za-z0-9.-]{0,200}[A-Za-z0-9])?")
_NUMBER = re.compile(r"\d{1,18}")
_STEM = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z]{1,30}(?:(?:-[A-Za-z]{1,30}){0,4}-?|-(?:\d{1,3}-){1,4}|\d{1,4}-|\d{1,4}[A-Za-z]{1,30}-?)$"
)
"""Prefix of a host's number: words, or an address."""
_MASTER, _WORKER = re.compile(r"(?<=-)master-0(?!\d)"), re.compile(r"(?<=-)worker-(\d{1,6})(?!\d)")
_SOME, _LOCALS = 2, 16


class LogOwner(NamedTuple):
    """Owner of a log, as far as its path shows."""

    rank: int | None = None
    local: int | None = None
    attempt: int = 0
    host: str = ""
    machine: bool = False
    """True for a log of the machine instead of a rank."""
    node: str = ""
    """Host if several ranks print in the file: the number that looks like a rank may then be a host's."""


class _Numbers(NamedTuple):
    """Roles of the numbers in a path, found by comparison with other paths of the same form."""

    task: int | None = None
    local: int | None = None
    host: str = ""
    rest: str = ""
    """Path without the number of the task."""


def of_paths(names: Sequence[str]) -> list[LogOwner]:
    """Return the owner of the log for each path; numbers are compared over all paths."""
    numbers = _after_master(_find_numbers([name for name in names if not _is_machine(name)]))
    found = [_of(name, numbers.get(name, _Numbers())) for name in names]
    if len(found) == 1 and not found[0].machine and not _ONE_HOST.search(found[0].host):
        return [found[0]._replace(host="", node="")]  # many names contain a number
    hosts = {w.host for w in found if not w.machine}
    if (
        len(hosts) == 1
        and hosts != {""}
        and len(found) > 1
        and all(min(hosts) in n.rpartition("/")[2] for n in names if not _is_machine(n))
    ):
        return [w if w.machine else w._replace(host="", node="") for w in found]  # the job's name
    return found


def _after_master(numbers: dict[str, _Numbers]) -> dict[str, _Numbers]:
    """Add 1 to the numbers of Kubeflow's workers, which count from 0; the master `master-0` is rank 0 before them."""
    masters = {_MASTER.sub("#", name) for name in numbers if _MASTER.search(name)}
    if not masters:
        return numbers
    return {
        name: row._replace(task=row.task + 1)
        if row.task is not None
        and (found := _WORKER.search(name))
        and _WORKER.sub("#", name) in masters
        and int(found[1]) == row.task
        else row._replace(task=0)
        if _MASTER.search(name)
        else row
        for name, row in numbers.items()
    }


def _is_machine(name: str) -> bool:
    return bool(_KERNEL.search(name.rpartition("/")[2]))


def _of(name: str, numbers: _Numbers) -> LogOwner:
    if _is_machine(name):
        return LogOwner(host=_machine(name), machine=True)
    if found := _TORCHRUN.search(name):
        before = name[: found.start()].rstrip("/").rpartition("/")[0]  # without the run's folder
        return LogOwner(local=int(found[2]), attempt=int(found[1]), host=numbers.host or _word(before))
    local, rest = _LOCAL.search(name), _LOCAL.sub("", name)
    named = list(_RANK.finditer(rest))
    rank = int(named[-1][1]) if named else numbers.task if local is None else None
    return LogOwner(
        rank=rank,
        local=int(local[1]) if local else None,
        host=numbers.host or _word(_RANK.sub("_", numbers.rest or rest)),
        node=_word(name) if not named and numbers.task is not None else "",
    )


def _machine(name: str) -> str:
    """Return the host in the name of a kernel log, else the name of its folder if that looks like a host."""
    folder, _, file = name.rpartition("/")
    for part in (_KERNEL.sub("", _ENDING.sub("", file)), folder.rpartition("/")[2]):
        for found in _NAME.finditer(part):
            if any(c.isdigit() for c in found[0]):
                return found[0]
    return _word(name)


def _word(path: str) -> str:
    """Return a word that ends in a number, as host names do, from the last two parts of a path."""
    for part in reversed(path.rsplit("/", 2)[-2:]):
        for found in _HOST.finditer(part):
            if not _NO_HOST.fullmatch(found[1]):
                return found[1]
    return ""


def _find_numbers(names: Sequence[str]) -> dict[str, _Numbers]:
    """Return the numbers of the task and of the host for paths that differ only in numbers.

    A task's number differs in all of them and counts from 0 or 1; a host's number varies after a word.
    """
    forms: dict[str, list[str]] = defaultdict(list)
    for name in names:
        forms[_NUMBER.sub("#", name)].append(name)
    found: dict[str, _Numbers] = {}
    for rows in forms.values():
        if len(rows) < _SOME:
            found.update((name, _Numbers()) for name in rows if _MASTER.search(name))
            continue
        spans = [list(_NUMBER.finditer(name)) for name in rows]
        columns = list(zip(*([int(m[0]) for m in row] for row in spans), strict=True))
        task = next((n for n in range(len(columns) - 1, -1, -1) if counts(columns[n])), None)
        host = next(
            (n for n, c in enumerate(columns) if n != task and len(set(c)) > 1 and _stem(rows[0], spans[0][n])), None
        )
        local = _grid(columns, rows[0], spans[0]) if task is None else None
        for place, name in enumerate(rows):
            span = spans[place][host] if host is not None else None
            name_of = _whole(name, span, None if task is None else spans[place][task]) if span is not None else ""
            found[name] = _Numbers(
                None if task is None else columns[task][place],
                None if local is None else columns[local][place],
                name_of,
                name if task is None else f"{name[: spans[place][task].start()]}_{name[spans[place][task].end() :]}",
            )
    return found


def _grid(columns: Sequence[Sequence[int]], name: str, spans: Sequence[re.Match[str]]) -> int | None:
    """Return the column of local ranks: in the file's name, 0 to at most 15, each equally often."""
    folder = name.rfind("/")
    for n in range(len(columns) - 1, -1, -1):
        often = Counter(columns[n])
        most = max(often)
        if (
            spans[n].start() < folder
            or not 1 <= most < _LOCALS
            or len(often) != most + 1
            or len(columns[n]) <= most + 1
        ):
            continue
        if max(often.values()) - min(often.values()) <= 1:
            return n
    return None


def _stem(name: str, number: re.Match[str]) -> str:
    """Return the word before a number if it may belong to a host name."""
    before = re.split(r"\d{5,}-?|[/_]", name[: number.start()])[-1]
    found = _STEM.search(before)
    return found[0] if found and not _NO_HOST.fullmatch(f"{found[0]}0") else ""


def _whole(name: str, number: re.Match[str], task: re.Match[str] | None) -> str:
    """Return the host name around a number, such as `r02n05` or `h100-191`, without the task's number."""
    begin, end = number.span()
    while begin and (name[begin - 1].isalnum() or name[begin - 1] == "-"):
        begin -= 1
    while end < len(name) and (name[end].isalnum() or name[end] == "-"):
        end += 1
    token = name[begin:end]
    if (task is not None and begin <= task.start() < end) or _JOB_ID.search(token):
        stem = _stem(name, number)
        return f"{stem}{number[0]}" if stem else ""
    return _LABEL.sub("", token)


def counts(column: Sequence[int]) -> bool:
    """True if all values differ and count from 0 or 1 without large gaps; a missing rank's file may be lost."""
    return len(set(column)) == len(column) and min(column) <= 1 and max(column) < len(column) * 1.25 + _SOME
