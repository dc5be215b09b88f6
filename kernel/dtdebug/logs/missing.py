"""Ranks that did not come, as a monitored barrier and NCCL's desync report name them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from dtdebug_taxonomy.frames import is_library
from dtdebug_taxonomy.prefixes import rank_of
from dtdebug_taxonomy.ranks import CallSite, CollectiveRef, Verdict, spell
from dtdebug_taxonomy.snapshot import Snapshot

_FRAME = re.compile(r'File "([^"]{1,500})", line (\d{1,9}), in (\S{1,200})')
_NOT_PASSED = re.compile(
    r"\[Rank (\d{1,6})\]: Ranks? (\d{1,6}(?:, ?\d{1,6}){0,2000}) failed to pass monitoredBarrier in (\d{1,12}) ms"
)
_REACHED = re.compile(
    r"Rank (\d{1,6}) successfully reached monitoredBarrier, but received errors while waiting for send/recv "
    r"from rank (\d{1,6})"
)
_DID_NOT_JOIN = re.compile(
    r"\[(\d{1,6}(?:, ?\d{1,6}){0,2000})\] finished collective #\d{1,18}, but didn.t join collective #(\d{1,18})"
)
_JOINED = re.compile(
    r"\[(\d{1,6}(?:, ?\d{1,6}){0,2000})\] (?:started|joined but didn.t finish) (?:collective #\d|(\w{1,40}))"
)
_RAISED = re.compile(
    r"(?:\[\w{0,10}\d{1,6}\]\s?:|\d{1,6}:)?\s{0,3}([A-Za-z_][\w.]{1,100}(?:Error|Exception|Interrupt|Exit))\b(.{0,200})"
)
_ECHO = re.compile(r"(?i)monitoredBarrier|connection|gloo|nccl|timed out|timeout|collective")
"""What a rank raises because another one is gone."""
_EXIT = re.compile(r"\s{0,20}rank\s{1,20}: (\d{1,6}) \(local_rank: |\s{0,20}exitcode\s{1,20}: (-?\d{1,6})\b")
_NAMES = {
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "_ALLGATHER_BASE": "all_gather_into_tensor",
    "_REDUCE_SCATTER_BASE": "reduce_scatter_tensor",
    "ALLTOALL": "all_to_all",
    "ALLTOALL_BASE": "all_to_all_single",
}
_OF_VICTIMS = (0, 1, -15, -6)
"""Exit statuses that a rank also has which only waited: its own error, or ended by the launcher."""


class Line(NamedTuple):
    """One printed line."""

    number: int
    rank: int | None
    """As its prefix says."""
    text: str


def lines(snapshot: Snapshot) -> list[Line]:
    """The lines of an output with their numbers in the whole of it and their ranks."""
    rows = enumerate(snapshot.output.split("\n"), 1)
    return [Line(snapshot.true_line(number), rank_of(text), text) for number, text in rows]


def name(op: str) -> str:
    """What a program calls the operation that PyTorch prints in its own spelling."""
    return _NAMES.get(op, op.strip("_").lower())


def sites(printed: Iterable[Line]) -> dict[int, CallSite]:
    """Rank -> the innermost line of the user's own in its last traceback; only ranks that a prefix names."""
    found: dict[int, CallSite] = {}
    for line in printed:
        if line.rank is None:
            continue
        if "Traceback (most recent call last)" in line.text:
            found.pop(line.rank, None)
        elif (frame := _FRAME.search(line.text)) and not is_library(frame[1]):
            found[line.rank] = CallSite(line.rank, frame[1], int(frame[2]), frame[3])
    return found


def missing(printed: Sequence[Line], where: Mapping[int, CallSite]) -> Verdict | None:
    """The verdict of a monitored barrier or of a desync report, or None."""
    return _not_passed(printed, where) or _did_not_join(printed) or _silent_first(printed)


def _not_passed(printed: Sequence[Line], where: Mapping[int, CallSite]) -> Verdict | None:
    absent: set[int] = set()
    said: list[str] = []
    waited = 0
    for line in printed:
        found = _NOT_PASSED.search(line.text) if "failed to pass" in line.text else None
        if found is None or (line.rank is not None and line.rank != int(found[1])):
            continue  # numbers of a group of some ranks only: which ranks of the job they are is not said
        ranks = _numbers(found[2])
        if not ranks <= absent:
            absent |= ranks
            said.append(f"line {line.number}: {found[0]}"[:200])
        waited = int(found[3])
    if not absent:
        return None
    present = _arrived(printed) - absent
    deaths = _deaths(printed, absent)
    culprits = tuple(sorted(deaths or absent))
    how = "; ".join(deaths[rank][0] for rank in culprits[:3]) if deaths else "it was elsewhere"
    return Verdict(
        kind="dead" if deaths else "not_arrived",
        culprits=culprits,
        waiting=tuple(sorted(present)),
        sites=tuple(where[rank] for rank in (*culprits, *sorted(present)) if rank in where),
        confidence=0.9 if deaths or len(absent) == 1 else 0.7,
        summary=f"{spell(absent, 8).capitalize()} did not come to a barrier within {waited / 1000:g} s: {how}.",
        evidence=(*said, *(words for rank in culprits[:3] for words in deaths.get(rank, ())[1:]))[:8],
    )


def _arrived(printed: Sequence[Line]) -> set[int]:
    """Ranks that say that they came to the barrier: the first of the group by naming others, the rest themselves."""
    named = (
        _REACHED.search(line.text) or _NOT_PASSED.search(line.text)
        for line in printed
        if "onitoredBarrier" in line.text
    )
    return {int(found[1]) for found in named if found}


def _deaths(printed: Sequence[Line], absent: set[int]) -> dict[int, tuple[str, str]]:
    """Rank -> (how it ended, where that is printed), of absent ranks that did not only wait."""
    found: dict[int, tuple[str, str]] = {}
    rank = None
    for line in printed:
        if row := _EXIT.match(line.text):
            rank = int(row[1]) if row[1] else rank
            if row[2] and rank in absent and int(row[2]) not in _OF_VICTIMS and rank is not None:
                found.setdefault(
                    rank, (f"rank {rank} ended with {_status(int(row[2]))}", f"line {line.number}: exit code {row[2]}")
                )
        elif line.rank in absent and (raised := _RAISED.match(line.text)) and not _ECHO.search(raised[0]):
            words = f"{raised[1]}{raised[2]}".strip()[:160]
            found.setdefault(line.rank, (f"rank {line.rank} raised {words}", f"line {line.number}: {words}"))
    return found


def _status(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _did_not_join(printed: Sequence[Line]) -> Verdict | None:
    absent: set[int] = set()
    present: set[int] = set()
    said: list[str] = []
    seq = op = None
    for line in printed:
        if "collective #" not in line.text and "] started " not in line.text:
            continue
        if found := _DID_NOT_JOIN.search(line.text):
            absent |= _numbers(found[1])
            seq = int(found[2])
            said.append(f"line {line.number}: {found[0]}"[:200])
        elif found := _JOINED.search(line.text):
            present |= _numbers(found[1])
            op = op or found[2]
    if not absent or seq is None:
        return None
    waiting = tuple(sorted(present - absent))
    what = name(op) if op else "collective"
    return Verdict(
        kind="not_arrived",
        culprits=tuple(sorted(absent)),
        waiting=waiting,
        collective=CollectiveRef(what, seq),
        confidence=0.8,
        summary=f"{spell(absent, 8).capitalize()} did not join {what} #{seq}"
        + (f", in which {spell(waiting, 8)} {'wait' if len(waiting) > 1 else 'waits'}." if waiting else "."),
        evidence=tuple(dict.fromkeys(said))[:8],
    )


def _silent_first(printed: Sequence[Line]) -> Verdict | None:
    """All wait for the first rank, and it has said nothing: it never came, else it would have named others."""
    found = [
        (line, row) for line in printed if "successfully reached" in line.text and (row := _REACHED.search(line.text))
    ]
    accused = {int(row[2]) for _, row in found}
    waiting = {int(row[1]) for _, row in found}
    whole = all(line.rank == int(row[1]) for line, row in found)  # only prefixes show that a rank is silent
    if len(accused) != 1 or not whole or accused & {line.rank for line in printed if _RAISED.match(line.text)}:
        return None
    rank = min(accused)
    return Verdict(
        kind="not_arrived",
        culprits=(rank,),
        waiting=tuple(sorted(waiting)),
        confidence=0.6,
        summary=f"Rank {rank} did not come to a barrier in which {spell(waiting, 8)} waited for it.",
        evidence=tuple(f"line {line.number}: {row[0]}"[:200] for line, row in found[:8]),
    )


def _numbers(text: str) -> set[int]:
    return {int(part) for part in text.split(",")}
