"""Ranks that gloo aborted because a peer sent more bytes than they expected: what they were calling instead.

Such a rank leaves no dump: the stack that it wrote when it was aborted, the two numbers of gloo's message and its
peers' dumps are what is left.
https://github.com/pytorch/gloo/blob/main/gloo/transport/tcp/pair.cc
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from dtdebug.flight import source
from dtdebug.flight.program import Symbol
from dtdebug.flight.records import (
    Records,
    call_of,
    call_site,
    group_ref,
    ordered,
    place,
    sites_of,
    standing_still,
)
from dtdebug_taxonomy.frames import own_frames
from dtdebug_taxonomy.ranks import Alternative, CollectiveRef, Frame, Kind, Verdict, spell

_ENFORCE = re.compile(r"EnforceNotMet.{0,400}?(?P<got>\d{1,12}) vs\.? (?P<wanted>\d{1,12})", re.DOTALL)
_BYTES = {"Half": 2, "BFloat16": 2, "Float": 4, "Int": 4, "Double": 8, "Long": 8, "Short": 2, "Char": 1, "Byte": 1}
_LATELY = 8
"""Latest calls of a peer among which one at the same place is looked for."""
_RATIOS = (0.125, 0.25, 0.5, 2.0, 4.0, 8.0)
"""Between the sizes of two types of elements."""
_DID: dict[Kind, str] = {
    "wrong_size": "called {call} with another size than the others",
    "wrong_dtype": "called {call} with another type of elements than the others",
    "skipped": "skipped {call}",
    "extra": "made a call that no other rank makes, where the others call {call}",
    "replaced": "called something else where the others call {call}",
}


class _Due(NamedTuple):
    """The call that most peers were in."""

    group: str
    seq: int
    symbol: Symbol
    site: tuple[Frame, ...]


def aborted(records: Records) -> Verdict | None:
    """The verdict on a rank that gloo aborted: it, or the peer that sent, called something else than the others."""
    for rank, state in sorted(records.states.items()):
        match = _ENFORCE.search(state.exception) if state.alive is False else None
        if match is None:
            continue
        got, wanted = int(match["got"]), int(match["wanted"])
        stack = own_frames(state.stack)
        due = _at(records, rank, stack, got) or _due(records, rank)
        if due is None:
            kind: Kind = "wrong_dtype" if wanted and got / wanted in _RATIOS else "wrong_size"
            return _verdict(records, rank, None, (kind, _sizes(got, wanted)), doubtful=True)
        members = len(records.layout.members.get(due.group, ()))
        # It may have expected what all expect: then the peer that sent the other size differs, whichever that is.
        doubtful = _fits(due.symbol, wanted, members) and not _fits(due.symbol, got, members)
        return _verdict(records, rank, due, _kind(records, stack, due, got, wanted), doubtful=doubtful)
    return None


def _at(records: Records, rank: int, stack: Sequence[Frame], got: int) -> _Due | None:
    """The call that peers made lately at the place of the rank, if what the rank was sent belongs to it.

    Peers need not stand where the rank stands: the root of a broadcast goes on at once.
    """
    if not stack:
        return None
    for other, p in sorted(records.programs.items()):
        for position in range(len(p.order) - 1, max(len(p.order) - _LATELY, 0) - 1, -1):
            site, group = p.site(position), p.group(position)
            members = records.layout.members.get(group, ())
            here = bool(site) and (site[-1].file, site[-1].line) == (stack[-1].file, stack[-1].line)
            if other != rank and here and rank in members and _fits(p.symbol(position), got, len(members)):
                return _Due(group, p.seqs[position], p.symbol(position), site)
    return None


def _due(records: Records, rank: int) -> _Due | None:
    """What most peers called last on a group that they share with the rank."""
    votes: Counter[tuple[str, int, Symbol, tuple[Frame, ...]]] = Counter()
    for other, p in records.programs.items():
        last = len(p.order) - 1
        if other != rank and last >= 0 and rank in records.layout.members.get(p.group(last), ()):
            votes[p.group(last), p.seqs[last], p.symbol(last), p.site(last)] += 1
    return _Due(*votes.most_common(1)[0][0]) if votes else None


def _fits(symbol: Symbol, size: int, members: int) -> bool:
    """A message of that many bytes is the tensor, or a part of it as gloo's rings cut it."""
    numbers = [math.prod(s) for s in (symbol.inputs or symbol.outputs)]
    width = _BYTES.get(symbol.dtypes[0] if symbol.dtypes else "", 4)
    parts = {1, members, 2 * members}
    return any(
        width * cut(n / part) == size for n in numbers for part in parts if part for cut in (math.ceil, math.floor)
    )


def _kind(records: Records, stack: Sequence[Frame], due: _Due, got: int, wanted: int) -> tuple[Kind, str]:
    sizes = _sizes(got, wanted)
    here, there = (stack[-1] if stack else None), (due.site[-1] if due.site else None)
    if here is None or there is None:
        return "wrong_size", sizes
    if (here.file, here.line) == (there.file, there.line):
        return ("wrong_dtype" if wanted and got / wanted in _RATIOS else "wrong_size"), f"{sizes} at the same place"
    known = {site[-1] for p in records.programs.values() for site in p.site_table if site}
    if any((here.file, here.line) == (f.file, f.line) for f in known):
        return "skipped", f"{sizes}; it is at {place(here)}, where the others come from time to time"
    if here.file == there.file and source.exclusive(here.file, here.line, there.line):
        return "replaced", f"{sizes}; a condition lets only one of {place(here)} and line {there.line} run"
    return "extra", f"{sizes}; it is at {place(here)}, where no other rank calls anything"


def _sizes(got: int, wanted: int) -> str:
    return f"it expected {wanted} bytes and was sent {got}"


def _verdict(records: Records, rank: int, due: _Due | None, what: tuple[Kind, str], *, doubtful: bool) -> Verdict:
    kind, because = what
    call = call_of(records, due.symbol.op, due.seq, due.group) if due else "a collective"
    members = records.layout.members.get(due.group, ()) if due else records.expected
    did = _DID[kind].format(call=call)
    waiting = standing_still(records, (rank,))
    sites = sites_of(records, (rank,), waiting)
    stack = records.states[rank].stack
    if stack:
        sites[rank] = call_site(rank, stack)
    peers = tuple(r for r in members if r != rank)
    sender = Alternative(
        kind=kind,
        culprits=peers,
        because="a rank is aborted too where its peer sent the wrong size",
        refute="its own call has the size that the others' calls have",
    )
    alternatives = [
        *([sender] if doubtful else []),
        Alternative(
            kind="replaced" if kind == "extra" else "extra",
            culprits=(rank,),
            because="gloo's message has two numbers of bytes, and not the calls that they belong to",
            refute="the source at the call sites tells",
        ),
    ]
    return Verdict(
        kind=kind,
        culprits=(rank,),
        waiting=waiting,
        group=group_ref(records, due.group) if due else None,
        collective=CollectiveRef(due.symbol.op, due.seq) if due else None,
        where=ordered(sites, (rank,)),
        confidence=0.4 if doubtful else 0.7,
        summary=f"{spell((rank,)).capitalize()} {did}.",
        evidence=(f"gloo aborted rank {rank}: {because}.", *([f"Its peers called {call}."] if due else [])),
        alternatives=tuple(alternatives),
    )
