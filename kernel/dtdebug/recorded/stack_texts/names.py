"""Reads rank, host and round from names of files, and ranks from command lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from dtdebug_taxonomy.model.launch_variables import RANK

_RANK = re.compile(
    r"(?:(?<![a-z])|(?<=local)|(?<=global))(?:rank|worker|proc|gpu)[-_.=]?(?P<rank>\d{1,7})(?!\d)", re.IGNORECASE
)
_BARE = re.compile(r"(?:\A|[-_.])r?(?P<rank>\d{1,7})\Z")
_ROUND = re.compile(
    r"(?:(?<![a-z])(?:round|look|pass|snapshot|snap|sample|take|try|attempt|time|dump|t|after|at|iter|run|stacks?)[-_.]?"
    r"(?P<round>\d{1,7})s?|(?P<clock>\d{4}-?\d\d-?\d\d[-_T ]?\d\d[-_:.]?\d\d(?:[-_:.]?\d\d)?|\d\d[-_:]\d\d[-_:]\d\d))",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d{1,7}\Z")
_HOST = re.compile(
    r"(?P<host>(?:(?:[a-z][a-z0-9]{0,20}-){0,6})?(?:node|host|nid|worker-node|machine|cn|gpu-?node|compute)[-_]?\d{1,6})",
    re.IGNORECASE,
)
_OPTION = re.compile(
    r"(?:--?|\b)(?P<local>local[-_]?)?rank[= ](?P<rank>\d{1,6})\b"
    rf"|\b(?:{'|'.join(RANK[1:])})=(?P<env>\d{{1,6}})"
    r"|ray::\w{1,60}\S{0,40} ?\((?:rank|world_rank)[= ](?P<ray>\d{1,6})\)",
    re.IGNORECASE,
)
_LAUNCHER = re.compile(
    r"torchrun\b|torch\.distributed\.(?:run|launch)\b|(?:\A|/)(?:deepspeed|accelerate|mpirun|mpiexec|srun|horovodrun)\s"
    r"|deepspeed\.launcher|accelerate(?:\.commands)?\.launch|multiprocessing\.(?:resource_tracker|semaphore_tracker)"
    r"|compile_worker|ray::IDLE|raylet|gcs_server|(?:dashboard|log_monitor|monitor|agent)\.py"
)


class Named(NamedTuple):
    """Meaning of a file's name for the processes in it."""

    rank: int | None = None
    host: str = ""
    round: str = ""
    label: str = ""
    """Part in which the name differs from those of like files, if it says nothing of these."""
    like: str = ""
    """Like files: the rest of the name, and the folder."""

    @property
    def number(self) -> int | None:
        """The number that the label ends in."""
        m = _BARE.search(self.label)
        return int(m["rank"]) if m is not None else None


def named(files: Sequence[PurePath]) -> list[Named]:
    """Return what the names of the files say, as far as it tells them apart."""
    found = [_of_one(file) for file in files]
    groups: dict[str, list[int]] = {}
    for n, (file, name) in enumerate(zip(files, found, strict=True)):
        if name == Named():
            groups.setdefault(f"{file.parent}/{_NUMBER.sub('', file.stem)}{file.suffix}", []).append(n)
    if len(groups) > 1 and all(len(rows) == 1 for rows in groups.values()):  # no numbers: the names are of hosts
        groups = {"": [n for rows in groups.values() for n in rows]}
    for like, rows in groups.items():
        chosen = [files[n] for n in rows]
        labels = [_distinct(file, chosen) for file in chosen]
        if len(rows) > 1 and len({*labels}) == len(rows):
            for n, label in zip(rows, labels, strict=True):
                found[n] = Named(label=label, like=like)
    return found


def _of_one(file: PurePath) -> Named:
    rank, host, number = None, "", ""
    for part in (*file.parts[-3:-1], file.stem):
        if m := _RANK.search(part):
            rank = int(m["rank"])
        if m := _HOST.search(part):
            host = m["host"]
        rest = _RANK.sub("", part if not host else part.replace(host, ""))
        if m := _ROUND.search(rest):
            number = m["clock"] or m["round"].zfill(7)
    return Named(rank, host, number)


def _distinct(file: PurePath, files: Sequence[PurePath]) -> str:
    """Return the part of a file's name in which it differs from the others."""
    stems = [f.stem for f in files]
    before = next((n for n, letters in enumerate(zip(*stems, strict=False)) if len({*letters}) > 1), 0)
    while before and file.stem[before - 1 : before].isalnum():
        before -= 1
    return file.stem[before:].strip("-_.") or file.stem


def rank_of_command(command: str) -> tuple[int | None, int | None]:
    """Return (rank, local rank) that a command line names."""
    rank = local = None
    for m in _OPTION.finditer(command[:4000]):
        number = int(m["rank"] or m["env"] or m["ray"])
        if m["local"]:
            local = number
        else:
            rank = number
    return rank, local


def is_launcher(command: str) -> bool:
    """True for a command that starts or serves the ranks, but is none."""
    return _LAUNCHER.search(command[:4000]) is not None
