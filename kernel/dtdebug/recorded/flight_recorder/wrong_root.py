"""Finds ranks that name a different root from their group: by sizes of gather and scatter, or by live stacks."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from dtdebug.recorded.flight_recorder.rank_program import PAIRED

if TYPE_CHECKING:
    from dtdebug.recorded.flight_recorder.verdict_input import Records


class WrongRoots(NamedTuple):
    """An operation whose ranks do not agree on the root."""

    culprits: tuple[int, ...]
    group: str
    op: str
    seq: int | None
    certain: bool
    because: str


def wrong_roots(records: Records) -> WrongRoots | None:
    """Return the first unfinished operation whose ranks disagree on the root."""
    return _by_sizes(records) or _by_stack(records)


def _by_sizes(records: Records) -> WrongRoots | None:
    calls: dict[tuple[str, int, str], dict[int, bool]] = defaultdict(dict)
    usual: dict[str, Counter[int]] = defaultdict(Counter)
    for rank, p in records.programs.items():
        for o in p.open:
            symbol = p.symbol_table[o.symbol]
            calls[o.group, o.seq, symbol.op][rank] = symbol.is_root()
        rooted = {i for i, s in enumerate(p.symbol_table) if s.is_root()}
        if rooted:
            positions = {o.position for o in p.open}
            for i, (index, s) in enumerate(zip(p.order, p.symbols, strict=True)):
                if s in rooted and i not in positions:
                    usual[p.names[index]][rank] += 1
    for (group, seq, op), ranks in sorted(calls.items()):
        roots = [rank for rank, is_root in ranks.items() if is_root]
        if op not in ("gather", "scatter") or len(roots) < 2:
            continue
        before = usual[group].most_common(1)
        right = before[0][0] if before and before[0][0] in roots else min(roots)
        wrong = tuple(r for r in roots if r != right)
        said = f"ranks {', '.join(map(str, roots))} each call {op} as its root"
        if before and right == before[0][0]:
            said += f"; rank {right} was the root before"
        return WrongRoots(wrong, group, op, seq, bool(before), said)
    return None


def _by_stack(records: Records) -> WrongRoots | None:
    named: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for rank, s in records.states.items():
        if s.pending is not None and s.pending.peer is not None and s.pending.op not in PAIRED:
            named[s.pending.group, s.pending.op][rank] = s.pending.peer
    for (group, op), ranks in sorted(named.items()):
        votes = Counter(ranks.values()).most_common()
        if len(votes) < 2:
            continue
        right = votes[0][0]
        wrong = tuple(sorted(r for r, root in ranks.items() if root != right))
        certain = votes[0][1] > votes[1][1]
        said = "; ".join(f"root {root} is named by {count} rank(s)" for root, count in votes[:4])
        seq = next((s.pending.seq for s in records.states.values() if s.rank in wrong and s.pending), None)
        return WrongRoots(wrong, group, op, seq, certain, said)
    return None
