"""Timeline of the latest collectives of one group, one lane per set of equal ranks, that shows the divergence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from dtdebug.privacy.sanitize import one_line
from dtdebug.recorded.flight_recorder.group_layout import Layout
from dtdebug.recorded.flight_recorder.rank_program import P2P, Program, Symbol
from dtdebug_taxonomy.model.ranks import Frame, Verdict, ranges
from dtdebug_taxonomy.model.ranks_view import Call, Lane, Timeline
from dtdebug_taxonomy.stacks.frames import short

CALLS, LANES = 16, 64
"""Maximum numbers of collectives of a rank, and of lanes, that are drawn."""
_BEFORE = 8
"""Number of collectives drawn before the divergence."""
_DEEPEST = 256
"""Maximum number of collectives between the first and the last rank that are drawn together."""
_STEPS = 2_000_000
"""Maximum number of entries of all dumps to walk through: a group may be used seldom."""
_RANGES, _WORD, _AT = 64, 40, 120

_Calls = tuple[tuple[Call, Symbol], ...]
Positions = dict[int, int]
"""Sequence number of a collective -> its position in the program."""


def timeline(
    programs: Mapping[int, Program], layout: Layout, verdict: Verdict
) -> tuple[Timeline | None, tuple[str, ...]]:
    """Return the timeline, None if no collective was recorded; and notes on what was left out."""
    group = _group(programs, layout, verdict)
    if group is None:
        return None, ()
    members = layout.members.get(group) or tuple(sorted(programs))
    told = {rank: programs[rank] for rank in members if rank in programs}
    called = _latest_positions(told, group)
    votes = _votes(told, called)
    culprits = frozenset(verdict.culprits if verdict.kind != "none" else ())
    accused = _verdict_seq(layout.name(group), verdict)
    parted = _divergence_seq(called, votes, accused, hangs=verdict.kind != "none")
    window = _window({rank: max(mine, default=0) for rank, mine in called.items()}, parted, culprits)
    lanes: dict[_Calls, list[int]] = {}
    begun: dict[_Calls, dict[int, float]] = {}
    for rank in members:
        calls: _Calls = ()
        if rank in told:
            calls, times = _calls(told[rank], called[rank], window, votes, accused=rank in culprits)
            first = begun.setdefault(calls, times)
            first |= {seq: min(time, first.get(seq) or time) for seq, time in times.items() if time}
        lanes.setdefault(calls, []).append(rank)
    drawn = [
        Lane(
            ranks=ranges(ranks, _RANGES),
            count=len(ranks),
            culprit=culprits.issuperset(ranks),
            calls=tuple(_with_start(call, begun[calls].get(call.seq, 0.0)) for call, _ in calls),
        )
        for calls, ranks in sorted(lanes.items(), key=lambda row: (culprits.isdisjoint(row[1]), len(row[1]), row[1]))
    ]
    notes: tuple[str, ...] = ()
    if len(drawn) > LANES:
        left = drawn[LANES - 1 : -1]
        notes = (f"the time line leaves out {sum(lane.count for lane in left)} ranks in {len(left)} lanes",)
        drawn = [*drawn[: LANES - 1], drawn[-1]]
    return Timeline(group=one_line(layout.name(group), _AT), lanes=tuple(drawn), parted=parted), notes


def _group(programs: Mapping[int, Program], layout: Layout, verdict: Verdict) -> str | None:
    """Return the verdict's group, else the one with the most calls."""
    used: Counter[str] = Counter()
    for p in programs.values():
        counts = Counter(p.order)
        used.update({p.names[index]: count for index, count in counts.items()})
    if verdict.group is not None:
        named = next((name for name in used if layout.name(name) == verdict.group.name), None)
        if named is not None:
            return named
    return max(used, key=lambda name: (used[name], name), default=None)


def _latest_positions(told: Mapping[int, Program], group: str) -> dict[int, Positions]:
    """Return the positions of each rank's latest collectives, without those far before the last rank's latest."""
    deepest = max(256, _STEPS // max(1, len(told)))
    latest = {rank: next(_backwards(p, group, deepest), (0, 0))[1] for rank, p in told.items()}
    top = max(latest.values(), default=0)
    low = max(min(latest.values(), default=0), top - _DEEPEST) - CALLS
    called: dict[int, Positions] = {}
    for rank, p in told.items():
        mine = called[rank] = {}
        for position, seq in _backwards(p, group, deepest):
            if seq <= low:
                break
            mine.setdefault(seq, position)
    return called


def _backwards(p: Program, group: str, deepest: int) -> Iterator[tuple[int, int]]:
    """Yield (position, sequence number) of the collectives of a group, the latest first."""
    if group not in p.names:
        return
    index, order = p.names.index(group), p.order
    sent = {number for number, symbol in enumerate(p.symbol_table) if symbol.op in P2P}
    for position in range(len(order) - 1, max(-1, len(order) - 1 - deepest), -1):
        if order[position] == index and p.symbols[position] not in sent:
            yield position, p.seqs[position]


def _votes(told: Mapping[int, Program], called: Mapping[int, Positions]) -> dict[int, Counter[Symbol]]:
    """Return sequence number -> number of ranks for each call."""
    votes: dict[int, Counter[Symbol]] = {}
    for rank, positions in called.items():
        p = told[rank]
        compared = [symbol.agreed_part() for symbol in p.symbol_table]
        for seq, position in positions.items():
            votes.setdefault(seq, Counter())[compared[p.symbols[position]]] += 1
    return votes


def _verdict_seq(group: str, verdict: Verdict) -> int | None:
    """Return the number of the verdict's collective, if it is of this group."""
    same = verdict.group is None or verdict.group.name == group
    return verdict.collective.seq if verdict.collective is not None and same else None


def _divergence_seq(
    called: Mapping[int, Positions], votes: Mapping[int, Counter[Symbol]], accused: int | None, *, hangs: bool
) -> int | None:
    """Return the first number at which ranks made different calls or, in a hang, that a rank has not called.

    The verdict's own number takes precedence over one that a rank has not called: an early dump ends before the others.
    """
    differ = [seq for seq, calls in votes.items() if len(calls) > 1]
    if hangs and accused is not None and accused in votes:
        differ.append(accused)
    elif hangs:
        reached = min((max(positions, default=0) for positions in called.values()), default=0)
        differ += [seq for seq in votes if seq > reached]
    return min(differ, default=None)


def _window(reached: Mapping[int, int], parted: int | None, culprits: Collection[int]) -> range:
    """Return the numbers to draw: up to the last call of all ranks that passed the divergence.

    Ranks may run ahead of their devices by any amount, which means nothing.
    """
    end = max(reached.values(), default=0)
    if parted is not None:
        past = [seq for rank, seq in reached.items() if rank not in culprits and seq >= parted]
        end = min(min(past, default=parted), parted + CALLS - _BEFORE - 1)
    return range(end - CALLS + 1, end + 1)


def _calls(
    p: Program, positions: Positions, window: range, votes: Mapping[int, Counter[Symbol]], *, accused: bool
) -> tuple[_Calls, dict[int, float]]:
    """Return the collectives without their times, so that equal lanes are equal, with their symbols; and the times."""
    still = {o.position for o in p.open}
    calls, times = [], {}
    for seq in window:
        position = positions.get(seq)
        if position is None:
            continue
        symbol = p.symbol(position)
        times[seq] = round(p.time(position) or 0.0, 6)
        compared = symbol.agreed_part()
        call = Call(
            seq=seq,
            op=one_line(symbol.op, _WORD),
            open=position in still,
            odd=_odd(compared, votes[seq], accused=accused),
            at=_place(p.site(position)),
        )
        calls.append((call, compared))
    return tuple(calls), times


def _odd(symbol: Symbol, votes: Counter[Symbol], *, accused: bool) -> bool:
    """True if most ranks made a different call; a tie is decided by the verdict."""
    if len(votes) == 1:
        return False
    mine, most = votes[symbol], max(votes.values())
    return mine < most or (accused and list(votes.values()).count(most) > 1)


def _with_start(call: Call, begun: float) -> Call:
    return Call(seq=call.seq, op=call.op, open=call.open, odd=call.odd, at=call.at, begun=begun)


def _place(site: Sequence[Frame]) -> str:
    """Format the user's line, in full for a notebook cell: only its kernel knows the cell's number."""
    if not site:
        return ""
    file, line, function = site[-1].file, site[-1].line, site[-1].function
    if "ipykernel_" in file or file.startswith("<ipython-input-"):
        return one_line(f"{file}:{line}" + ("" if function == "<module>" else f", in {function}"), 2 * _AT)
    return one_line(f"{short(file)}:{line} {function}", _AT)
