"""Finds where programs part: the first call at which a rank differs from the majority of its peers."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

_TRIES = 256
"""Earlier places that are looked at."""
_PAST = 4096
"""Calls that are compared backwards."""


class Parting(NamedTuple):
    """A rank that leaves the common program."""

    rank: int
    at: int
    """Place in the aligned program where it differs first."""
    certain: bool
    """More than half of the ranks that got there agree on something else."""


class Common(NamedTuple):
    """The program that the majority runs, and who leaves it where."""

    program: array[int]
    partings: tuple[Parting, ...]
    ranks: tuple[int, ...]
    """Ranks that follow the program as far as they got."""


def common(programs: Mapping[int, array[int]], pull: Callable[[int], int]) -> Common:
    """The majority's program among programs that begin at the same call.

    Where votes are equal, right is what the program did before in the same place, else what ranks do for whom fewer
    others wait (`pull`).

    Equal programs are handled once, so the cost grows with the number of calls and of *different* programs.
    """
    classes: dict[bytes, list[int]] = {}
    for rank, p in programs.items():
        classes.setdefault(p.tobytes(), []).append(rank)
    alive = [(programs[ranks[0]], ranks) for ranks in classes.values()]
    partings: list[Parting] = []
    while True:
        reference = max(alive, key=lambda row: (len(row[0]), len(row[1])))[0]
        first = min((i for p, _ in alive if (i := first_difference(reference, p)) is not None), default=None)
        if first is None:
            break
        votes: Counter[int] = Counter()
        for p, ranks in alive:
            if len(p) > first:
                votes[p[first]] += len(ranks)
        (winner, most), *others = votes.most_common()
        certain = 2 * most > votes.total() and most > 1
        if others and others[0][1] == most:
            equals = {token for token, votes_for in votes.items() if votes_for == most}
            due = _due(reference[:first], equals)
            winner, certain = _break_tie(alive, first, equals, pull) if due is None else due, due is not None
        stay = []
        for p, ranks in alive:
            if len(p) > first and p[first] != winner:
                partings += (Parting(rank, first, certain) for rank in ranks)
            else:
                stay.append((p, ranks))
        alive = stay
    return Common(reference, tuple(partings), tuple(sorted(r for _, ranks in alive for r in ranks)))


def _break_tie(
    alive: list[tuple[array[int], list[int]]], index: int, equals: set[int], pull: Callable[[int], int]
) -> int:
    """The call of those for whom fewest wait: a guess, for nobody is in the majority."""
    pulls = {
        token: max(pull(r) for p, ranks in alive if len(p) > index and p[index] == token for r in ranks)
        for token in sorted(equals)
    }
    return min(pulls, key=lambda token: pulls[token])


def first_difference(a: array[int], b: array[int]) -> int | None:
    """The first index at which both have a value and the values differ; None if one begins the other."""
    length, width = min(len(a), len(b)), a.itemsize
    left, right = a[:length].tobytes(), b[:length].tobytes()
    if left == right:
        return None
    low, high = 0, length  # equal before low, a difference before high
    while high - low > 1:
        middle = (low + high) // 2
        if left[low * width : middle * width] == right[low * width : middle * width]:
            low = middle
        else:
            high = middle
    return low


def _due(program: array[int], calls: set[int]) -> int | None:
    """Of some calls the one that followed the past which resembles the end for longest; none if that is open.

    A past without both calls is shorter than a round, and does not say whose turn it is.
    """
    pasts = dict.fromkeys(calls, 0)
    for at in _before(program):
        if program[at + 1] in pasts:
            pasts[program[at + 1]] = max(pasts[program[at + 1]], _alike(program, at))
    (call, longest), *others = sorted(pasts.items(), key=lambda row: -row[1])
    past = {*program[len(program) - longest :]}
    open_ = any(n == longest or (n and not past >= {call, other}) for other, n in others)
    return call if longest and not open_ else None


def expected(program: array[int], most: int = 32) -> array[int]:
    """What most likely follows: what followed the earlier place whose past resembles the end for longest.

    Training repeats itself, so this is the same place of an earlier step.
    """
    best, begin = 0, 0
    for at in _before(program):
        length = _alike(program, at)
        if length > best:
            best, begin = length, at + 1
    return program[begin : begin + most] if best else array(program.typecode)


def _before(program: array[int]) -> Iterator[int]:
    """The latest earlier places of the last call."""
    data, width = program.tobytes(), program.itemsize
    last = data[-width:]
    at, tries = len(data) - width, 0
    while last and at > 0 and tries < _TRIES:
        at = data.rfind(last, 0, at + width - 1)
        if at < 0 or at % width:
            continue
        tries += 1
        yield at // width


def _alike(program: array[int], at: int) -> int:
    """How many calls up to a place are those up to the end."""
    length = 0
    end = len(program) - 1
    while length <= at and length < _PAST and program[at - length] == program[end - length]:
        length += 1
    return length
