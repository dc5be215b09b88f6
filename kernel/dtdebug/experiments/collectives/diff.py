"""Finds where two runs diverge: the first collective of a rank at which they differ, and the difference."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from dtdebug.errors import UsageError
from dtdebug.experiments.collectives import recording_format
from dtdebug.experiments.collectives.recording_format import Course, RecordedCollective

What = Literal["value", "shape", "dtype", "order", "missing"]
_WINDOW = 3
"""Number of matching collectives that confirm a shift."""


class FirstDifference(msgspec.Struct, frozen=True, kw_only=True):
    """First collective at which two runs of a rank differ."""

    rank: int
    index: int
    """Number of the collective in that rank, from 1."""
    op: str
    group: tuple[int, ...]
    what: What
    file: str
    line: int
    tensor: int | None = None
    """Index of the differing tensor, from 0."""
    before: str = ""
    after: str = ""
    since: int | None = None
    """Last collective known to agree, if the records between it and `index` were not kept."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a comparison."""

    first: FirstDifference | None
    compared: int
    """Number of collectives that both runs have, over all ranks."""
    others: tuple[FirstDifference, ...] = ()
    """First differences of the other ranks, in the order in which they spread."""
    notes: tuple[str, ...] = ()
    whole: bool = True
    """The compared recordings are complete."""


def runs(left: Path, right: Path) -> Comparison:
    """Compare two recordings rank by rank.

    Raises:
        UsageError: one of them is not a recording, or has another version.

    """
    a, b = recording_format.ranks(left), recording_format.ranks(right)
    notes: list[str] = []
    if a.keys() != b.keys():
        notes.append(f"ranks {_format_ranks(a)} were recorded in {left}, ranks {_format_ranks(b)} in {right}")
    differences: list[tuple[FirstDifference, Course]] = []
    courses: dict[int, Course] = {}
    compared, whole = 0, True
    for rank in sorted(a.keys() & b.keys()):
        one, other = recording_format.load(left, a[rank]), recording_format.load(right, b[rank])
        notes += [*one.notes, *other.notes]
        notes += _versions(one, other) if not courses else []
        courses[rank] = one
        whole = whole and not any(course.broken_off or _gap(course.records) for course in (one, other))
        found, count = pair(one, other, values=True)
        found = _earlier(one, other, found)
        compared += count
        if found is not None:
            differences.append((found, one))
    for rank in sorted(a.keys() ^ b.keys()):
        there = recording_format.load(left, a[rank]) if rank in a else recording_format.load(right, b[rank])
        if there.records:
            differences.append((_difference(rank, there.records[0], "missing"), there))
    if not differences and not compared:
        raise UsageError(f"diff: there is no collective that was recorded in {left} and in {right}")
    if not differences:
        return Comparison(first=None, compared=compared, notes=tuple(dict.fromkeys(notes)), whole=whole)
    times = _times(courses) if len(differences) > 1 else {}
    spread = sorted((d for d, _ in differences), key=lambda d: (times.get((d.rank, d.index), d.index), d.rank))
    return Comparison(first=spread[0], others=tuple(spread[1:]), compared=compared, notes=tuple(dict.fromkeys(notes)))


def two_ranks(folder: Path, one: int, other: int) -> Comparison:
    """Compare two ranks of one run: their calls and shapes, not the values, which legitimately differ.

    Raises:
        UsageError: the folder does not contain a recording of these ranks.

    """
    names = recording_format.ranks(folder)
    missing = [rank for rank in (one, other) if rank not in names]
    if missing:
        raise UsageError(f"{folder}: no rank {missing[0]}; recorded are {_format_ranks(names)}")
    a, b = recording_format.load(folder, names[one]), recording_format.load(folder, names[other])
    shared = frozenset(_groups(a)) & frozenset(_groups(b))
    for course in (a, b):
        course.records = [r for r in course.records if (r.key.group, r.key.ordinal) in shared and r.key.peer is None]
    found, compared = pair(a, b, values=False)
    if found is None and not compared:
        raise UsageError(f"{folder}: no collective was recorded of a group that ranks {one} and {other} are both in")
    return Comparison(first=found, compared=compared, notes=(*a.notes, *b.notes))


def _groups(course: Course) -> list[tuple[tuple[int, ...], int]]:
    return [(r.key.group, r.key.ordinal) for r in course.records]


def pair(a: Course, b: Course, *, values: bool) -> tuple[FirstDifference | None, int]:
    """Return the first difference of two courses, and the number of collectives compared."""
    one, other = map(recording_format.by_thread, _align_records(a.records, b.records))
    found, compared = list[FirstDifference](), 0
    for thread in dict.fromkeys([*one, *other]):
        mine, theirs = one.get(thread, []), other.get(thread, [])
        if a.broken_off:  # its next call is unknown
            theirs = theirs[: len(mine)]
        if b.broken_off:
            mine = mine[: len(theirs)]
        first, count = _pair(a.header.rank, mine, theirs, values=values)
        compared += count
        found += [first] if first is not None else []
    return min(found, key=lambda d: d.index, default=None), compared


def _pair(
    rank: int, left: list[RecordedCollective], right: list[RecordedCollective], *, values: bool
) -> tuple[FirstDifference | None, int]:
    """Return the first difference in one thread, and the number of collectives compared."""
    for index, (x, y) in enumerate(zip(left, right, strict=False)):
        kind, tensor = _differs(x, y, values=values)
        if kind is not None:
            if kind == "shape" and x.key.same_call(y.key):
                return _difference(rank, x, kind, tensor, y), index
            shorter = _find_shift(left[index:], right[index:])
            shown = y if shorter == "left" else x
            return _difference(rank, shown, "missing" if shorter else kind, tensor, y), index
    compared = min(len(left), len(right))
    if len(left) != len(right):
        longer = left if len(left) > len(right) else right
        return _difference(rank, longer[compared], "missing"), compared
    return None, compared


def _earlier(a: Course, b: Course, found: FirstDifference | None) -> FirstDifference | None:
    """Return an earlier difference that the checkpoints show among records that were not kept; else `found`."""
    threads = {record.key.thread for record in (*a.records, *b.records)}
    if len(threads) > 1 or not (_gap(a.records) or _gap(b.records)):
        return found
    agreed = 0
    for at in sorted(a.checkpoints.keys() & b.checkpoints.keys()):
        if found is not None and found.index <= at:
            return found
        if a.checkpoints[at] != b.checkpoints[at]:
            return FirstDifference(
                rank=a.header.rank, index=at, op="", group=(), what="value", file="", line=0, since=agreed
            )
        agreed = at
    return found


def _align_records(
    left: list[RecordedCollective], right: list[RecordedCollective]
) -> tuple[list[RecordedCollective], list[RecordedCollective]]:
    """Return the records whose numbers both have: of long runs the middle is not kept."""
    if _gap(left) or _gap(right):
        common = {r.number for r in left} & {r.number for r in right}
        return [r for r in left if r.number in common], [r for r in right if r.number in common]
    return left, right


def _gap(records: list[RecordedCollective]) -> bool:
    return bool(records) and records[-1].number - records[0].number + 1 != len(records)


def _differs(x: RecordedCollective, y: RecordedCollective, *, values: bool) -> tuple[What | None, int | None]:
    if not x.key.same_call(y.key):
        return "order", None
    if x.key is not y.key:
        for kind, mine, other in (("shape", x.key.shapes, y.key.shapes), ("dtype", x.key.dtypes, y.key.dtypes)):
            if mine != other:
                first = next((n for n, (p, q) in enumerate(zip(mine, other, strict=False)) if p != q), None)
                return kind, first  # type: ignore[return-value]
    if values and x.prints != y.prints:
        pairs = zip(x.prints, y.prints, strict=False)
        first = next((n for n, (p, q) in enumerate(pairs) if p is not None and q is not None and p != q), None)
        if first is not None or len(x.prints) != len(y.prints):
            return "value", first
    return None, None


def _find_shift(left: Sequence[RecordedCollective], right: Sequence[RecordedCollective]) -> str:
    """Return which run lacks one collective here, or "" if dropping one does not realign them."""
    if _alike(left[0], right[0]):
        return ""
    if len(right) > 1 and _follow(left, right[1:]):
        return "left"
    if len(left) > 1 and _follow(left[1:], right):
        return "right"
    return ""


def _follow(left: Sequence[RecordedCollective], right: Sequence[RecordedCollective]) -> bool:
    pairs = list(zip(left[:_WINDOW], right[:_WINDOW], strict=False))
    return bool(pairs) and all(_alike(x, y) for x, y in pairs)


def _alike(x: RecordedCollective, y: RecordedCollective) -> bool:
    """True for the same call from the same line."""
    same = x.key.same_call(y.key) and x.key.shapes == y.key.shapes and x.key.dtypes == y.key.dtypes
    return same and x.key.line == y.key.line


def _difference(
    rank: int,
    record: RecordedCollective,
    what: What,
    tensor: int | None = None,
    other: RecordedCollective | None = None,
) -> FirstDifference:
    other_key = other.key if other is not None else record.key
    texts = {
        "shape": (str(list(record.key.shapes)), str(list(other_key.shapes))),
        "dtype": (str(list(record.key.dtypes)), str(list(other_key.dtypes))),
        "order": (f"{record.key.op} line {record.key.line}", f"{other_key.op} line {other_key.line}"),
    }
    before, after = texts.get(what, ("", ""))
    return FirstDifference(
        rank=rank, index=record.number, op=record.key.op, group=record.key.group, what=what,
        file=record.key.file, line=record.key.line, tensor=tensor, before=before[:300], after=after[:300],
    )  # fmt: skip


def _times(courses: dict[int, Course]) -> dict[tuple[int, int], int]:
    """Return each collective's logical time: the number of collectives that must precede it."""
    order: dict[tuple[int, int], int] = {}
    queues = {rank: iter(course.records) for rank, course in courses.items()}
    heads = {rank: next(queue, None) for rank, queue in queues.items()}
    clock = dict.fromkeys(courses, 0)
    sent: dict[tuple[object, ...], list[int]] = defaultdict(list)
    moved = True
    while moved:
        moved = False
        for rank in courses:
            while (record := heads[rank]) is not None:
                key = record.key
                together = [rank]
                if key.op == "send":
                    clock[rank] += 1
                    sent[(rank, key.peer, key.group, key.ordinal, key.tag)].append(clock[rank])
                elif key.op.startswith("recv"):
                    posts = sent.get((key.peer, rank, key.group, key.ordinal, key.tag))
                    if not posts and key.peer in courses:
                        break
                    clock[rank] = max(clock[rank], posts.pop(0) if posts else 0) + 1
                else:
                    together = [r for r in key.group if r in courses] or [rank]
                    if not all((head := heads[r]) is not None and head.key.same_call(key) for r in together):
                        break
                    time = 1 + max(clock[r] for r in together)
                    clock.update(dict.fromkeys(together, time))
                for r in together:
                    head = heads[r]
                    if head is not None:
                        order[(r, head.number)] = clock[r]
                    heads[r] = next(queues[r], None)
                moved = True
    for rank, left in heads.items():  # the runs do not match from here on: continue by number
        for late in [*([left] if left is not None else []), *queues[rank]]:
            clock[rank] += 1
            order[(rank, late.number)] = clock[rank]
    return order


def _versions(one: Course, other: Course) -> list[str]:
    a, b = one.header, other.header
    names = sorted(a.versions.keys() | b.versions.keys())
    notes = [f"{n} {a.versions.get(n, '?')} and {b.versions.get(n, '?')}" for n in names]
    notes = [note for n, note in zip(names, notes, strict=True) if a.versions.get(n) != b.versions.get(n)]
    if a.world != b.world:
        notes.append(f"{a.world} and {b.world} ranks")
    return notes


def _format_ranks(ranks: dict[int, str]) -> str:
    names = [str(rank) for rank in list(ranks)[:8]]
    return ", ".join(names) + (" ..." if len(ranks) > 8 else "")
