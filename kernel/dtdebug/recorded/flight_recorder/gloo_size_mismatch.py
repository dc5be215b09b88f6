"""Verdicts on ranks that gloo aborted because a peer sent more bytes than they expected.

Such a rank leaves no dump: the stack that it wrote when it was aborted, the two numbers of gloo's message and its
peers' dumps are the only evidence.
https://github.com/pytorch/gloo/blob/main/gloo/transport/tcp/pair.cc
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from dtdebug.recorded.flight_recorder import source_branches
from dtdebug.recorded.flight_recorder.loop_exits import runs_out
from dtdebug.recorded.flight_recorder.rank_program import Program, Symbol
from dtdebug.recorded.flight_recorder.verdict_input import (
    Records,
    call_of,
    frame_in_words,
    group_ref,
    seen_at,
    sites_of,
    sort_sites,
    standing_still,
)
from dtdebug_taxonomy.model.claims import GLOO_ABORTED, LOOP_LASTS, Claim, Record, texts
from dtdebug_taxonomy.model.rank_ranges import shorten_text
from dtdebug_taxonomy.model.ranks import Alternative, CollectiveRef, Frame, Kind, Verdict, spell
from dtdebug_taxonomy.stacks.frames import call_site, own_frames, place_claim

_ENFORCE = re.compile(r"EnforceNotMet.{0,400}?(?P<got>\d{1,12}) vs\.? (?P<wanted>\d{1,12})", re.DOTALL)
_BYTES = {"Half": 2, "BFloat16": 2, "Float": 4, "Int": 4, "Double": 8, "Long": 8, "Short": 2, "Char": 1, "Byte": 1}
_OBJECTS, _COUNT = "broadcast_object_list", 8
"""Call whose first message has 8 bytes for each object of the list."""
_LATELY = 8
"""Number of a peer's latest calls that are searched for one at the same place."""
_RATIOS = (0.125, 0.25, 0.5, 2.0, 4.0, 8.0)
"""Ratios between the sizes of two element types."""
_DID: dict[Kind, str] = {
    "wrong_size": "called {call} with a different size from the others",
    "wrong_dtype": "called {call} with a different dtype from the others",
    "skipped": "never called {call}",
    "extra": "made a call that no other rank makes, where the others call {call}",
    "replaced": "called something else where the others call {call}",
}


class _DueCall(NamedTuple):
    """The call that most peers were in."""

    group: str
    seq: int
    symbol: Symbol
    site: tuple[Frame, ...]
    after: Symbol | None
    """Call that follows it, if a peer has made one."""
    members: int


def gloo_abort_verdict(records: Records) -> Verdict | None:
    """Return the verdict on a rank that gloo aborted: it, or the sending peer, made a different call."""
    for rank, state in sorted(records.states.items()):
        match = _ENFORCE.search(state.exception) if state.alive is False else None
        if match is None:
            continue
        got, wanted = int(match["got"]), int(match["wanted"])
        stack = own_frames(state.stack)
        apart = _find_odd_rank(records) if stack else None
        if apart not in (None, rank):  # The aborted rank is where all others are: a different rank sent the wrong size.
            return _sender(records, rank, apart, _sizes(got, wanted))
        due = _at(records, rank, stack, got) or _due(records, rank)
        if (unlike := _unlike_lists(records, rank, due, got, wanted)) is not None:
            return unlike
        if due is None:
            kind: Kind = "replaced" if apart == rank else "wrong_size"
            return _verdict(records, rank, None, (kind, _sizes(got, wanted)), doubtful=apart != rank)
        # The aborted rank may have expected what all expect: then the sender differs, whichever rank that is.
        doubtful = apart != rank and _fits(due.symbol, wanted, due.members)
        return _verdict(records, rank, due, _kind(records, state.stack, due, got, wanted), doubtful=doubtful)
    return None


def _unlike_lists(records: Records, rank: int, due: _DueCall | None, got: int, wanted: int) -> Verdict | None:
    """Return the verdict if the ranks passed lists of different lengths to broadcast_object_list.

    The first message of that call holds the size of each object of the source's list.
    """
    stacks = {r: state.stack for r, state in records.states.items() if own_frames(state.stack)}
    site = call_site(rank, records.states[rank].stack)
    if site is None or rank not in stacks or got % _COUNT or wanted % _COUNT:
        return None
    if not all(any(f.function == _OBJECTS for f in stack) for stack in stacks.values()):
        return None
    if due is not None and not (due.site and (due.site[-1].file, due.site[-1].line) == (site.file, site.line)):
        return None
    known = due is not None or len(stacks) > 1
    here, there = wanted // _COUNT, got // _COUNT
    passed = f"passed a list of {here} object{'' if here == 1 else 's'} to {_OBJECTS}"
    record = Record(source="exception", rank=rank, words=shorten_text(records.states[rank].exception))
    claim = Claim(what="compared", ranks=(rank,), record=record, words=f"{GLOO_ABORTED}: {_sizes(got, wanted)}")
    waiting = standing_still(records, (rank,))
    only = "" if known else ", if the rank that sent is in the same call"
    return Verdict(
        kind="wrong_size",
        culprits=(rank,),
        waiting=waiting,
        collective=CollectiveRef(_OBJECTS, None),
        sites=sort_sites({**sites_of(records, (rank,), waiting), rank: site}, (rank,)),
        confidence=0.8 if known else 0.5,
        summary=f"Rank {rank} {passed} at {site.file}:{site.line}, and was sent {got} bytes, the sizes of {there}"
        f"{only}: the lists of all ranks must have one length.",
        claims=(claim,),
        evidence=texts((claim,)),
    )


def _find_odd_rank(records: Records) -> int | None:
    """Return the only rank whose stack differs from all others."""
    places: dict[tuple[tuple[str, int], ...], list[int]] = {}
    for other, state in records.states.items():
        stack = own_frames(state.stack)
        if stack:
            places.setdefault(tuple((f.file, f.line) for f in stack), []).append(other)
    ordered_places = sorted(places.values(), key=len)
    if len(ordered_places) != 2 or len(ordered_places[0]) != 1 or len(ordered_places[1]) < 2:
        return None
    return ordered_places[0][0]


def _sender(records: Records, aborted_rank: int, rank: int, sizes: str) -> Verdict:
    """Return the verdict on an odd rank that sent the wrong size to the aborted rank, which is where all others are."""
    stack = own_frames(records.states[rank].stack)
    known = {site[-1] for r, p in records.programs.items() if r != rank for site in p.site_table if site}
    seen = any((stack[-1].file, stack[-1].line) == (f.file, f.line) for f in known)
    what: tuple[Kind, str] = "skipped" if seen else "extra", f"{sizes}; it is where all others are"
    found = _verdict(records, rank, _due(records, rank), what, aborted_rank=aborted_rank, doubtful=False)
    parted = source_branches.fork(stack, own_frames(records.states[aborted_rank].stack))
    if parted is None:
        return found
    inside, after = parted
    if not (source_branches.left_loop(inside.file, inside.line, after.line) and runs_out(inside)):
        return found
    record = Record(source="source", path=inside.file, line=inside.line, rank=rank, words=inside.code)
    lasts = place_claim(Claim(what="compared", ranks=(rank,), record=record, words=LOOP_LASTS), inside)
    claims = (*found.claims, lasts)
    return msgspec.structs.replace(found, claims=claims, evidence=texts(claims))


def _at(records: Records, rank: int, stack: Sequence[Frame], got: int) -> _DueCall | None:
    """Return the recent call of a peer at the rank's place, if the bytes that the rank was sent fit it.

    Peers need not be at the rank's place now: the root of a broadcast continues at once.
    """
    if not stack:
        return None
    for other, p in sorted(records.programs.items()):
        for position in range(len(p.order) - 1, max(len(p.order) - _LATELY, 0) - 1, -1):
            site, group = p.site(position), p.group(position)
            members = records.layout.members.get(group, ())
            here = bool(site) and (site[-1].file, site[-1].line) == (stack[-1].file, stack[-1].line)
            if other != rank and here and rank in members and _fits(p.symbol(position), got, len(members)):
                return _due_of(p, position, len(members))
    return None


def _due(records: Records, rank: int) -> _DueCall | None:
    """Return the call that most peers made last, or have not finished, on a group that they share with the rank."""
    votes: Counter[tuple[str, int]] = Counter()
    found: dict[tuple[str, int], tuple[Program, int]] = {}
    for other, p in records.programs.items():
        position = p.open[0].position if p.open else len(p.order) - 1
        if other != rank and position >= 0 and rank in records.layout.members.get(p.group(position), ()):
            key = (p.group(position), p.seqs[position])
            votes[key] += 1
            found.setdefault(key, (p, position))
    if not votes:
        return None
    p, position = found[votes.most_common(1)[0][0]]
    return _due_of(p, position, len(records.layout.members[p.group(position)]))


def _due_of(p: Program, position: int, members: int) -> _DueCall:
    after = p.symbol(position + 1) if position + 1 < len(p.order) else None
    return _DueCall(p.group(position), p.seqs[position], p.symbol(position), p.site(position), after, members)


def _fits(symbol: Symbol, size: int, members: int) -> bool:
    """True if a message of `size` bytes is the tensor, or a part of it as gloo's ring algorithms split it."""
    numbers = [math.prod(s) for s in (symbol.inputs or symbol.outputs)]
    width = _BYTES.get(symbol.dtypes[0] if symbol.dtypes else "", 4)
    parts = {1, members, 2 * members}
    return any(
        width * cut(n / part) == size for n in numbers for part in parts if part for cut in (math.ceil, math.floor)
    )


def _kind(records: Records, stack: Sequence[Frame], due: _DueCall, got: int, wanted: int) -> tuple[Kind, str]:
    sizes, own = _sizes(got, wanted), own_frames(stack)
    if due.after is not None and _fits(due.after, wanted, due.members) and not _fits(due.symbol, wanted, due.members):
        return "skipped", f"{sizes}: the size of what follows in the others' program"
    here, there = (own[-1] if own else None), (due.site[-1] if due.site else None)
    if here is None or there is None:
        return "wrong_size", sizes
    calls = any(f.file.endswith("distributed_c10d.py") for f in stack)
    waits = not calls and (here.file, here.function) == (there.file, there.function)  # waits for an earlier operation
    if waits or (here.file, here.line) == (there.file, there.line):
        return ("wrong_dtype" if wanted and got / wanted in _RATIOS else "wrong_size"), f"{sizes} at the same place"
    known = {site[-1] for p in records.programs.values() for site in p.site_table if site}
    if any((here.file, here.line) == (f.file, f.line) for f in known):
        return "skipped", f"{sizes}; it is at {frame_in_words(here)}, where the others come from time to time"
    if here.file == there.file and source_branches.exclusive(here.file, here.line, there.line):
        return "replaced", f"{sizes}; a condition lets only one of {frame_in_words(here)} and line {there.line} run"
    return "extra", f"{sizes}; it is at {frame_in_words(here)}, where no other rank calls anything"


def _sizes(got: int, wanted: int) -> str:
    return f"it expected {wanted} bytes and was sent {got}"


def _verdict(
    records: Records,
    rank: int,
    due: _DueCall | None,
    what: tuple[Kind, str],
    *,
    doubtful: bool,
    aborted_rank: int | None = None,
) -> Verdict:
    """Return the verdict on a rank; gloo aborted it, unless `aborted_rank` names a different one.

    `doubtful`: its own call may be right and the sender's wrong; then the verdict names no culprit.
    """
    kind, because = what
    call = call_of(records, due.symbol.op, due.seq, due.group) if due else "a collective"
    members = records.layout.members.get(due.group, ()) if due else records.expected
    did = _DID[kind].format(call=call)
    culprits = () if doubtful else (rank,)
    waiting = standing_still(records, (rank,))
    sites = sites_of(records, (rank,), waiting)
    if (site := call_site(rank, records.states[rank].stack)) is not None:
        sites[rank] = site
    peers = tuple(r for r in members if r != rank)
    sender = Alternative(
        kind=kind,
        culprits=peers,
        because="a rank is aborted too where its peer sent the wrong size",
        refute="its own call has the size that the others' calls have",
    )
    own = Alternative(
        kind=kind,
        culprits=(rank,),
        because="gloo aborts the rank whose own call is for another size than what it was sent",
        refute="its own call has the size that the others' calls have",
    )
    alternatives = [
        *([own, sender] if doubtful else []),
        Alternative(
            kind="replaced" if kind == "extra" else "extra",
            culprits=(rank,),
            because="gloo's message has two numbers of bytes, and not the calls that they belong to",
            refute="the source at the call sites tells",
        ),
    ]
    struck = rank if aborted_rank is None else aborted_rank
    record = Record(source="exception", rank=struck, words=shorten_text(records.states[struck].exception))
    claims = [
        Claim(what="compared", ranks=(struck,), record=record, words=f"{GLOO_ABORTED}: {because}"),
        *seen_at(records, rank),
    ]
    if due is not None and peers:
        claims.append(
            Claim(
                what="called",
                ranks=peers,
                record=Record(source="dump", rank=peers[0]),
                op=due.symbol.op,
                seq=due.seq,
                group=records.layout.name(due.group),
            )
        )
    return Verdict(
        kind=kind,
        culprits=culprits,
        waiting=waiting,
        group=group_ref(records, due.group) if due else None,
        collective=CollectiveRef(due.symbol.op, due.seq) if due else None,
        sites=sort_sites(sites, (rank,)),
        confidence=0.4 if doubtful else 0.7,
        summary=f"{spell((rank,)).capitalize()} {did}."
        if culprits
        else _undecided_summary(rank, due and call, kind, because),
        claims=tuple(claims),
        evidence=texts(claims),
        alternatives=tuple(alternatives),
    )


def _undecided_summary(rank: int, call: str | None, kind: Kind, because: str) -> str:
    what = "size or type of elements" if kind == "wrong_dtype" else "size"
    why = because.partition(";")[0]
    if call is None:
        return (
            f"Rank {rank} was aborted by gloo: {why}. It or the rank that sent made another call than its peers, or "
            "passed a tensor of another size or type; which of them is not known."
        )
    return (
        f"Rank {rank} was aborted by gloo in {call}: {why}. Its call or that of the rank that sent has another "
        f"{what} than the others; which of them is not known."
    )
