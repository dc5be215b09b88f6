"""Identifies the printer of each line of a shared log from prefixes or messages, and the device of a rank."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dtdebug.recorded.log_files.line_shapes import KeptLine
from dtdebug_taxonomy.knowledge.hardware import bus
from dtdebug_taxonomy.logs import lines
from dtdebug_taxonomy.logs.lines import Line

_SAYS = re.compile(r"\[(?:PG (?:ID )?0 (?:PG GUID 0)?(?:\(default_pg\) )?)?Rank (\d{1,7})\] ")
NCCL = re.compile(
    rb"(?P<host>[\w.-]{1,100}):(?P<pid>\d{1,9}):\d{1,9} \[\d{1,3}\] NCCL INFO .{0,200}"
    rb"\brank (?P<rank>\d{1,7}) nranks (?P<world>\d{1,7}) cudaDev \d{1,3} (?:nvmlDev \d{1,3} )?"
    rb"(?:busId (?P<bus>[0-9a-f]{3,12})|- Init)"
)
"""NCCL's line about a rank when it creates a communicator, with `NCCL_DEBUG=INFO`."""
_JOINS = re.compile(rb"process group for: .{0,40}\[rank=(\d{1,7}), world_size=\d{1,7}\]")
"""Message of a Ray Train worker when it joins."""
_NUMBER = re.compile(r"\d{1,6}$")
_PODS = 3
"""Minimum number of pods to conclude that each runs one rank."""


def lines_by_printer(kept: Sequence[KeptLine]) -> list[Line]:
    """Return the kept lines of a log, each with its printer."""
    text = "\n".join(row.raw.decode("utf-8", "replace").replace("\n", " ") for row in kept)
    world = device([row.raw for row in kept]).world
    return _one_each([_set_rank(line, world) for line in lines.split_lines(text, whole=False)])


def _one_each(rows: list[Line]) -> list[Line]:
    """Assign all lines of a pod to its rank if each pod is seen to run one rank."""
    known: dict[str, set[int]] = {}
    for line in rows:
        if line.host and line.local is not None:
            return rows
        if line.host and line.rank is not None:
            known.setdefault(line.host, set()).add(line.rank)
    ranks = set().union(*known.values())
    if len(known) < _PODS or len(ranks) != len(known) or any(len(of) > 1 for of in known.values()):
        return rows
    own = {host: min(of) for host, of in known.items()}
    own |= _infer_ranks(own, {line.host for line in rows} - own.keys())
    return [line._replace(rank=own[line.host]) if line.rank is None and line.host in own else line for line in rows]


def _infer_ranks(known: dict[str, int], others: set[str]) -> dict[str, int]:
    """Return the ranks of pods without one, if the numbers in all other pods' names are their ranks plus a constant."""
    numbers = {host: (host[: found.start()], int(found[0])) for host in known if (found := _NUMBER.search(host))}
    forms = {(stem, known[host] - number) for host, (stem, number) in numbers.items()}
    if len(forms) != 1 or len(numbers) < len(known):
        return {}
    stem, base = min(forms)
    rest = {
        host: int(m[0]) + base for host in others if host.startswith(stem) and (m := _NUMBER.fullmatch(host, len(stem)))
    }
    return {host: rank for host, rank in rest.items() if rank >= 0 and rank not in known.values()}


def _set_rank(line: Line, world: int) -> Line:
    """Set the rank that only the message names: NCCL of the largest group, Ray, or an older torch."""
    if line.rank is not None:
        return line
    if world and "nranks" in line.body and (made := NCCL.search(line.body[:800].encode())):
        return line._replace(rank=int(made["rank"])) if int(made["world"]) == world else line
    if "world_size=" in line.body and (made := _JOINS.search(line.body[:800].encode())):
        return line._replace(rank=int(made[1]))
    if not line.body.startswith(("[Rank ", "[PG ")):
        return line
    found = _SAYS.match(line.body)
    return line._replace(rank=int(found[1])) if found else line


class NcclDevice(NamedTuple):
    """Data that NCCL prints about a rank."""

    rank: int | None = None
    host: str = ""
    pid: int = 0
    pci: str = ""
    world: int = 0


def device(raws: Sequence[bytes]) -> NcclDevice:
    """Return the data of the largest communicator named; its ranks are those of the job."""
    best = NcclDevice()
    for raw in raws:
        found = NCCL.search(raw[:800]) if b"nranks" in raw else None
        if found is not None and int(found["world"]) > best.world:
            best = NcclDevice(
                int(found["rank"]),
                found["host"].decode(),
                int(found["pid"]),
                bus(found["bus"].decode()) if found["bus"] else "",
                int(found["world"]),
            )
    return best
