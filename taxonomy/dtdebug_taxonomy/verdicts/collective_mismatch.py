"""Finds the rank that differs in PyTorch's reports of mismatched collectives, by a vote of all ranks' messages.

TORCH_DISTRIBUTED_DEBUG=DETAIL lets each rank name only the first other rank that differs, so that rank 0 accuses rank
3 and rank 3 accuses rank 0. The majority shows which rank diverged; without one, only the call of each is known.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from dtdebug_taxonomy.logs.events import PrintedException
from dtdebug_taxonomy.logs.lines import Line
from dtdebug_taxonomy.logs.log import Log
from dtdebug_taxonomy.model.claims import Claim, texts
from dtdebug_taxonomy.model.ranks import Alternative, CallSite, CollectiveRef, Kind, Verdict, say, spell
from dtdebug_taxonomy.verdicts.absent_ranks import call_claim, missing, name_in_program, sites
from dtdebug_taxonomy.verdicts.disagreement import Side, disagreement

_DETECTED = "Detected mismatch between collectives on ranks"
_MARKS = (_DETECTED, "onitoredBarrier", "didn't join collective", "didn't finish collective")
_SIDE = re.compile(
    r"Rank (\d{1,6}) is running (?:inconsistent )?collective: CollectiveFingerPrint\("
    r"(?:SequenceNumber=(\d{1,18})[ ,]{0,2})?OpType=(\w{1,40})"
    r"(?:, TensorShape=\[([\d, ]{0,800})\], TensorDtypes=([\w, ]{0,400}?)(?:, TensorDevice|\)|$))?"
)
_EVIDENCE = 8


class _Call(NamedTuple):
    """Call of a rank, as reported by itself or by another rank."""

    seq: int | None
    op: str
    sizes: str
    dtypes: str
    line: int

    def __str__(self) -> str:
        number = "" if self.seq is None else f" #{self.seq}"
        return f"{name_in_program(self.op)}{number}" + (f" of {self.arguments}" if self.arguments else "")

    @property
    def arguments(self) -> str:
        """Sizes and types of its tensors."""
        return " ".join(filter(None, (f"[{self.sizes}]" if self.sizes else "", self.dtypes)))


def mismatch_verdict(
    log: Log, own: Sequence[PrintedException], exclusive: Callable[[str, int, int], bool | None]
) -> Verdict | None:
    """Return the verdict that the messages of all ranks allow, or None.

    `own` are errors that ended ranks: they take precedence over messages about ranks that are gone.
    `exclusive(file, one, other)` is true if no rank reaches both lines of a file.
    """
    if not any(mark in line.body for line in log.lines for mark in _MARKS):
        return None
    where = sites(log)
    calls, unread = _fingerprints(log.lines)
    found = None if own else _vote(calls, where, exclusive) or _one_sided(calls, unread, where)
    return found or missing(log, own, where)


def _fingerprints(printed: Iterable[Line]) -> tuple[dict[int, _Call], set[int]]:
    """Return rank -> call, and the ranks whose call is garbled. A rank's own message precedes others' messages.

    Messages number the ranks within their group, which differs from the job's numbers in a group of some ranks; the
    line's prefix has the rank of the job. The call of a rank without tensors (a barrier) is garbled: PyTorch decodes
    it with the reader's own layout.
    """
    own: dict[int, _Call] = {}
    others: list[tuple[int, _Call]] = []
    named: dict[int, set[int]] = {}
    for line in printed:
        if _DETECTED not in line.body:
            continue
        for place, found in enumerate(_SIDE.finditer(line.body)):
            rank, call = int(found[1]), _call(found, line.number)
            if place == 0:
                told = rank if line.rank is None else line.rank
                own.setdefault(told, call)
                named.setdefault(rank, set()).add(told)
            else:
                others.append((rank, call))
    whole = all(ranks == {rank} for rank, ranks in named.items())
    for rank, call in others:
        known = named.get(rank, {rank} if whole else set())
        if len(known) == 1 and call.dtypes:
            own.setdefault(min(known), call)
    return own, {rank for rank, _ in others if whole} - own.keys()


def _call(found: re.Match[str], line: int) -> _Call:
    return _Call(int(found[2]) if found[2] else None, found[3], found[4] or "", found[5] or "", line)


def _vote(
    calls: Mapping[int, _Call], where: Mapping[int, CallSite], exclusive: Callable[[str, int, int], bool | None]
) -> Verdict | None:
    aspects: tuple[tuple[Kind, str], ...] = (("replaced", "op"), ("wrong_size", "sizes"), ("wrong_dtype", "dtypes"))
    for kind, aspect in aspects:
        values = {rank: getattr(call, aspect) for rank, call in calls.items()}
        if len(set(values.values())) < 2:
            continue
        value, votes = Counter(values.values()).most_common(1)[0]
        if votes * 2 <= len(values):
            return _verdict_without_majority(kind, calls, where)
        most = tuple(sorted(rank for rank in values if values[rank] == value))
        return _verdict(kind, calls, tuple(sorted(values.keys() - set(most))), most, where, exclusive=exclusive)
    return None


def _verdict(
    kind: Kind,
    calls: Mapping[int, _Call],
    culprits: tuple[int, ...],
    most: tuple[int, ...],
    where: Mapping[int, CallSite],
    *,
    exclusive: Callable[[str, int, int], bool | None],
) -> Verdict:
    culprit, crowd = calls[culprits[0]], calls[most[0]]
    others: tuple[Kind, ...] = ()
    if kind == "replaced":
        kind, others = _told_by_places(where.get(culprits[0]), where.get(most[0]), exclusive)
    one, many = _format_call(culprit, where.get(culprits[0])), _format_call(crowd, where.get(most[0]))
    claims = tuple(_claim(rank, calls[rank], where.get(rank)) for rank in (*culprits, *most)[:_EVIDENCE])
    return Verdict(
        kind=kind,
        culprits=culprits,
        waiting=most,
        collective=CollectiveRef(name_in_program(crowd.op), crowd.seq),
        sites=tuple(where[rank] for rank in (*culprits, *most) if rank in where),
        confidence=round((0.75 if others else 0.95) * (len(most) / len(calls)) ** 0.5, 2),
        summary=f"{spell(culprits, 8).capitalize()} {_are(culprits)} in {one} where {spell(most, 8)} "
        f"{_are(most)} in {many}: {_WORDS[kind] if len(culprits) == 1 else _plural(_WORDS[kind])}.",
        claims=claims,
        evidence=texts(claims),
        alternatives=tuple(
            Alternative(kind=other, culprits=culprits, because=_BECAUSE[other], refute=_REFUTE) for other in others
        ),
    )


def _verdict_without_majority(kind: Kind, calls: Mapping[int, _Call], where: Mapping[int, CallSite]) -> Verdict:
    """Return the verdict without a majority: the call of each rank is known, but not which is wrong."""
    parts: dict[tuple[int | None, str, str, str], list[int]] = {}
    for rank, call in sorted(calls.items()):
        parts.setdefault(call[:4], []).append(rank)
    sides = [
        Side(tuple(ranks), f"{say(ranks, 'are')} in {_format_call(calls[ranks[0]], where.get(ranks[0]))}")
        for ranks in sorted(parts.values())
    ]
    claims = tuple(_claim(rank, calls[rank], where.get(rank)) for rank in sorted(calls)[:_EVIDENCE])
    first = calls[sides[0].ranks[0]]
    return disagreement(kind, sides, CollectiveRef(name_in_program(first.op), first.seq), where, claims)


def _one_sided(calls: Mapping[int, _Call], unread: set[int], where: Mapping[int, CallSite]) -> Verdict | None:
    """Return the verdict on one rank's message alone whose other side is garbled: only the difference is known."""
    if len(calls) != 1 or not unread:
        return None
    ((rank, call),) = calls.items()
    other = "another one without tensors, such as a barrier" if call.dtypes else "another one"
    sides = [
        Side((rank,), f"rank {rank} is in {_format_call(call, where.get(rank))}"),
        Side(tuple(sorted(unread)), f"{say(sorted(unread), 'are')} in {other} (the message can't show which)"),
    ]
    claims = (_claim(rank, call, where.get(rank)),)
    return disagreement("replaced", sides, CollectiveRef(name_in_program(call.op), call.seq), where, claims)


def _claim(rank: int, call: _Call, site: CallSite | None) -> Claim:
    return call_claim(rank, (call.op, call.seq, call.arguments), call.line, site)


_WORDS: dict[Kind, str] = {
    "skipped": "it left a collective out",
    "extra": "it called one that the others do not call",
    "replaced": "it called another one, or the same ones in another order",
    "wrong_size": "its tensor has another size",
    "wrong_dtype": "its tensor has another type",
}
_BECAUSE: dict[Kind, str] = {
    "skipped": "left out, the next collective would meet the others' in the same way",
    "extra": "one call more would meet the others' next in the same way",
    "replaced": "the message shows one moment, not what came before",
}
_REFUTE = "the flight recorder's dumps of all ranks show the calls before and after"


def _told_by_places(
    culprit: CallSite | None, crowd: CallSite | None, exclusive: Callable[[str, int, int], bool | None]
) -> tuple[Kind, tuple[Kind, ...]]:
    """Return the kind and its alternatives: ahead in the same function, a call was skipped; behind, one was added."""
    if culprit is None or crowd is None or (culprit.file, culprit.function) != (crowd.file, crowd.function):
        return "replaced", ("skipped", "extra")
    if culprit.line == crowd.line or exclusive(culprit.file, culprit.line, crowd.line):
        return "replaced", ()
    return ("skipped", ("replaced",)) if culprit.line > crowd.line else ("extra", ("replaced", "skipped"))


def _format_call(call: _Call, site: CallSite | None) -> str:
    return str(call) + (f" ({site.file.rsplit('/', 1)[-1]}:{site.line})" if site else "")


def _plural(words: str) -> str:
    return (
        words.replace("it called", "they called").replace("it left", "they left").replace("its tensor", "their tensor")
    )


def _are(ranks: tuple[int, ...]) -> str:
    return "is" if len(ranks) == 1 else "are"
