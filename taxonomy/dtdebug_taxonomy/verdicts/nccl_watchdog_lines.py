"""Reads messages of NCCL's watchdogs, by group and rank: the collective that timed out, and the rank's progress.

A watchdog numbers the collectives of its group from 0 or 1 in the order in which its rank called them, so that a
number means the same call on every rank. Numbers of two groups are never compared, and a group name under which two
ranks have the same position belongs to several groups. The messages are those of `ProcessGroupNCCL.cpp`:
https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from dtdebug_taxonomy.logs.lines import Line
from dtdebug_taxonomy.logs.log import Log
from dtdebug_taxonomy.model.ranks import CallSite, Frame
from dtdebug_taxonomy.stacks.frames import call_site, own_frames
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.verdicts.absent_ranks import name_in_program

_GROUP = r"\[(?:PG (?:ID )?(?P<id>\w{1,20}) (?:(?:PG GUID )?(?P<name>[^\]\s]{1,80}) )?)?Rank (?P<rank>\d{1,6})\] {1,2}"
_REFUSED = " raised the following async exception: NCCL error: invalid usage"
"""Message of a watchdog about a collective whose sizes do not match the peer's."""
_CAUGHT = lazy_re(
    _GROUP + r"(?:Watchdog caught collective operation timeout: |Collective (?=[^\n]{1,300}" + _REFUSED + r"))"
    r"WorkNCCL\(SeqNum=(?P<seq>\d{1,18}), OpType=(?P<op>\w{1,40})(?=[,)])"
    r"(?:, NumelIn=(?P<into>\d{1,18}), NumelOut=(?P<out>\d{1,18}))?"
    r"(?:[^\n)]{0,100}(?:\(ms\)=\d{1,12})?\) ran for (?P<ran>\d{1,18}) )?"
)
_ENDS = lazy_re(_GROUP + "Process group watchdog thread terminated with exception: ")
_STATUS = lazy_re(
    _GROUP + r"[^\n]{0,300}?[Ll]ast enqueued (?:NCCL )?work: (?P<enqueued>-?\d{1,18}), "
    r"last completed (?:NCCL )?work: (?P<completed>-?\d{1,18})"
)
_RANK = lazy_re(r"\bRank \d{1,6}\]")
_BEGINS = lazy_re(r"\bRank \d{1,6}\] {1,2}(?:Watchdog|Exception|failure|Timeout|Process group watchdog)")
"""Text in the first part of a broken line."""
_CAUGHT_WHOLE = " milliseconds before timing out"
_BROKEN = 3
"""Maximum number of lines that continue a broken one."""
_AT = lazy_re(r"detected {0,2}by watchdog at work(?: sequence id)?: (\d{1,18})")
_STACK = "Stack trace of the failed collective:"
_FRAME = lazy_re(r"#(\d{1,3}) (\S{1,200}) from ([^\n]{1,500}):(\d{1,9})$")
_EQUAL_SIZES = frozenset({"ALLREDUCE", "BROADCAST", "REDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE"})
"""Collectives for which NCCL requires the same sizes on every rank."""
_DEFAULT = "default_pg"
_SPELLED = frozenset(("0(default_pg)", "(default_pg)", "0"))
"""Spellings of the group of all ranks in different releases."""
_FRAMES = 60
"""Maximum number of frames read of a stack."""


class TimedOutCollective(NamedTuple):
    """Collective that timed out on a rank."""

    seq: int
    op: str
    sizes: str
    line: int
    group: str = ""
    """Name of its group, if other groups printed messages too."""

    def __str__(self) -> str:
        where = f" in group {self.group}" if self.group else ""
        return f"{name_in_program(self.op)} #{self.seq}" + (f" of {self.sizes}" if self.sizes else "") + where


class GroupStatus(NamedTuple):
    """Progress of a rank in its group."""

    enqueued: int
    completed: int
    line: int


class WatchedGroup(NamedTuple):
    """Messages of the watchdogs of one group."""

    waits: Mapping[int, TimedOutCollective]
    status: Mapping[int, GroupStatus]
    sites: Mapping[int, CallSite]


class _WatchdogMessages:
    """Messages collected by group and rank."""

    def __init__(self) -> None:
        self.waits: dict[str, dict[int, list[TimedOutCollective]]] = {}
        self.status: dict[str, dict[int, GroupStatus]] = {}
        self.groups_of: dict[tuple[int, int], set[str]] = {}
        """(rank, number) -> groups in which the rank's watchdog names the number."""
        self.places: dict[str, dict[str, set[int]]] = {}
        """Group -> position in it -> ranks of the job at that position; without group names, their waiting times."""
        self.sites: dict[int, CallSite] = {}

    def rank(self, found: re.Match[str], line: Line) -> int | None:
        """Return the job's rank, or None. Without a prefix, the position is the rank only in the group of all ranks."""
        group = _group(found)
        if line.rank is not None:
            self.places.setdefault(group, {}).setdefault(found["rank"], set()).add(line.rank)
            return line.rank
        if not group and (ran := found.groupdict().get("ran")):  # each process has waited for a different time
            self.places.setdefault("", {}).setdefault(f"{found['rank']} #{found['seq']}", set()).add(int(ran))
        return int(found["rank"]) if group in ("", _DEFAULT) else None

    def comparable_groups(self) -> dict[str, WatchedGroup]:
        """Return the groups with comparable numbers: each rank waits in one call there, and has its own position."""
        named: dict[str, dict[int, list[TimedOutCollective]]] = {}
        for group, rows in self.waits.items():
            for rank, waits in rows.items():
                for wait in waits:
                    told = self.groups_of.get((rank, wait.seq), {""})
                    known = group or (min(told) if len(told) == 1 else "")
                    named.setdefault(known, {}).setdefault(rank, []).append(wait)
        if len(named) == 2 and "" in named:  # some ranks only print which group it was
            (chosen,) = named.keys() - {""}
            for rank, waits in named.pop("").items():
                named[chosen].setdefault(rank, []).extend(waits)
        found: dict[str, WatchedGroup] = {}
        for group, rows in named.items():
            apart = any(len({(w.seq, w.op) for w in waits}) > 1 for waits in rows.values())
            shared = any(len(ranks) > 1 for ranks in self.places.get(group, {}).values())
            if apart or shared or (not group and len(named) > 1):
                continue
            label = group if len(named) > 1 else ""
            waits_in = {rank: waits[0]._replace(group=label) for rank, waits in rows.items()}
            found[group] = WatchedGroup(waits_in, self._status_in(group), self.sites)
        return found

    def _status_in(self, group: str) -> Mapping[int, GroupStatus]:
        """Progress of the ranks; if no time-out names its group, in the only group that a rank mentions."""
        if group or len(self.status) != 1:
            return self.status.get(group, {})
        return next(iter(self.status.values()))


def watchdogs_by_group(log: Log) -> dict[str, WatchedGroup]:
    """Return group -> its messages, if a rank timed out in it and its numbers are distinct from other groups'."""
    heard = _WatchdogMessages()
    for index, line in enumerate(log.lines):
        text = _whole(log.lines, index) if _BEGINS.search(line.body) else line.body
        if ("Watchdog caught" in text or _REFUSED in text) and (found := _CAUGHT.search(text)):
            if (rank := heard.rank(found, line)) is not None:
                wait = _wait(found, line.number)
                outer = _ENDS.search(text[: found.start()])  # it repeats the message that it caught, without the group
                heard.waits.setdefault(_group(outer or found), {}).setdefault(rank, []).append(wait)
        elif "ast enqueued" in text and (found := _STATUS.search(text)):
            if (rank := heard.rank(found, line)) is not None:
                status = GroupStatus(int(found["enqueued"]), int(found["completed"]), line.number)
                heard.status.setdefault(_group(found), {}).setdefault(rank, status)
                if at := _AT.search(text):
                    heard.groups_of.setdefault((rank, int(at[1])), set()).add(_group(found))
        elif _STACK in line.body and line.rank is not None and (site := _site(log.lines, index)):
            heard.sites.setdefault(line.rank, site)
    return _with_alike(heard.comparable_groups(), log.around.alike)


def _with_alike(groups: dict[str, WatchedGroup], alike: Mapping[int, Sequence[int]]) -> dict[str, WatchedGroup]:
    """Add the ranks that print the same as one whose lines are here: they wait in the same call, at line 0."""
    if not alike:
        return groups
    found: dict[str, WatchedGroup] = {}
    for group, watched in groups.items():
        waits, status = dict(watched.waits), dict(watched.status)
        for rank in _first_of_each(watched.waits, alike):
            for other in alike[rank]:
                waits.setdefault(other, watched.waits[rank]._replace(line=0))
        for rank in _first_of_each(watched.status, alike):
            for other in alike[rank]:
                status.setdefault(other, watched.status[rank]._replace(line=0))
        found[group] = watched._replace(waits=waits, status=status)
    return found


def _first_of_each(ranks: Mapping[int, object], alike: Mapping[int, Sequence[int]]) -> list[int]:
    """One of each kind of ranks."""
    return [*{tuple(alike[rank][:1]): rank for rank in ranks if rank in alike}.values()]


def _whole(lines: Sequence[Line], index: int) -> str:
    """Return the line joined with the rest that a terminal or a table column broke off, between or within words."""
    line = lines[index].body
    rest = [*takewhile(_goes_on, lines[index + 1 : index + 1 + _BROKEN])]
    status = _STATUS.search(line)
    if status is not None:
        last = rest[0].body if rest and status.end() == len(line) and rest[0].body.isdecimal() else ""
        return f"{line}{last}"
    if not rest or _CAUGHT_WHOLE in line:
        return line
    for glue in ("", " "):
        text = line
        for part in rest:
            text = f"{text}{glue}{part.body}"
            if _CAUGHT_WHOLE in text or _STATUS.search(text):
                return text
    return line


def _goes_on(line: Line) -> bool:
    """True if the line may continue the one above."""
    return line.rank is None and not _RANK.search(line.body)


def _group(found: re.Match[str]) -> str:
    """Return the name that all members print: each rank counts PG IDs for itself."""
    group = found["name"] or found["id"] or ""
    return _DEFAULT if group in _SPELLED else group


def _wait(found: re.Match[str], line: int) -> TimedOutCollective:
    known = found["into"] is not None and found["op"] in _EQUAL_SIZES
    into, out = (int(found["into"]), int(found["out"])) if known else (0, 0)
    size = f"{into:,}" if into == out else f"{into:,} -> {out:,}"
    sizes = "" if not known else f"{size} element" if into == out == 1 else f"{size} elements"
    return TimedOutCollective(int(found["seq"]), found["op"], sizes, line)


def _site(lines: Sequence[Line], header: int) -> CallSite | None:
    """Return the program's own line in the stack below the header, which is printed innermost first."""
    frames: list[Frame] = []
    for line in lines[header + 1 : header + 1 + _FRAMES]:
        found = _FRAME.match(line.body.strip())
        if found is None or int(found[1]) != len(frames):
            break
        frames.append(Frame(found[3], int(found[4]), found[2]))
    return call_site(lines[header].rank, own_frames(frames[::-1]))
