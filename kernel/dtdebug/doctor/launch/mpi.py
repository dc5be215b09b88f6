"""Parses the commands of MPI and Horovod, which start ranks on the hosts of a list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from dtdebug.doctor.launch import hostfile

PROGRAMS = frozenset(("mpirun", "mpiexec", "orterun", "mpiexec.hydra", "prun"))
_COUNT = frozenset(("np", "n", "c"))
_HOSTS = frozenset(("H", "host", "hosts"))
_FILES = frozenset(("hostfile", "machinefile", "f", "default-hostfile"))
_PER_HOST = frozenset(("npernode", "ppn", "N", "perhost"))
_ONE = frozenset(
    ("x", "map-by", "bind-to", "rank-by", "prefix", "wdir", "wd", "path", "stdin", "am", "tune", "output-filename",
     "timeout", "rankfile", "rf", "cpus-per-proc", "cpus-per-rank", "report-uri", "display", "output", "genvlist",
     "envlist", "launcher", "bootstrap", "rmk", "iface", "launcher-exec", "bootstrap-exec", "personality", "app",
     "configfile", "pernode-list", "cpu-set", "cpu-list", "env", "runtime-options")
)  # fmt: skip
_TWO = frozenset(("mca", "gmca", "prtemca", "pmixmca", "genv"))


class MpiCommand(NamedTuple):
    """Parsed arguments of mpirun."""

    rows: list[tuple[str, int | None]]
    """(host, slots)."""
    ranks: int | None
    per_node: int | None
    exported: dict[str, str]
    """Variables exported to all ranks."""
    after: list[str]
    """Command that mpirun starts."""


def parse_mpirun(words: Sequence[str]) -> MpiCommand:
    """Parse the words after `mpirun`; Open MPI also accepts one dash for long options, MPICH has its own.

    Raises:
        UsageError: a list of hosts that it names can't be read.

    """
    rows: list[tuple[str, int | None]] = []
    count, per_node, exported = None, None, dict[str, str]()
    options, rest = _options(words)
    for name, value, following in options:
        if name in _COUNT:
            count = _number(value)
        elif name in _PER_HOST:
            per_node = _number(value)
        elif name in _HOSTS:
            rows = hostfile.inline(value)
        elif name in _FILES:
            rows = hostfile.read_hostfile(Path(value))
        elif name == "x" and "=" in value:
            exported[value.partition("=")[0]] = value.partition("=")[2]
        elif name == "genv" and len(following) == 2:
            exported[following[0]] = following[1]
        elif name == "map-by" and value.startswith("ppr:") and value.endswith(":node"):
            per_node = _number(value.split(":")[1])
    return MpiCommand(rows, count, per_node, exported, rest)


def started_command(words: Sequence[str]) -> list[str]:
    """Return the command in the words after `mpirun`."""
    return _options(words)[1]


def _options(words: Sequence[str]) -> tuple[list[tuple[str, str, list[str]]], list[str]]:
    """Return the (name, value, following words) of each option, and the remaining words."""
    found, index = list[tuple[str, str, list[str]]](), 0
    while index < len(words) and words[index].startswith("-"):
        name, equals, value = words[index].lstrip("-").partition("=")
        takes = 2 if name in _TWO else 1 if name in _COUNT | _HOSTS | _FILES | _PER_HOST | _ONE else 0
        following = list(words[index + 1 : index + 3])
        if not equals:
            value = following[0] if following else ""
        found.append((name, value, following))
        index += 1 if equals else 1 + takes
    return found, list(words[index:])


def started_program(words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Split a started command, `python -u train.py --lr 1`, into (program, arguments)."""
    after = list(words)
    while after and ("=" in after[0] or after[0] == "env"):
        after = after[1:]
    if after and PurePath(after[0]).name.startswith("python"):
        after = after[1:]
        while after and after[0].startswith("-") and after[0] != "-m":
            after = after[1:]
        after = after[1:] if after[:1] == ["-m"] else after
    return (after[0] if after else ""), tuple(after[1:])


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 8 else None
