"""Finds where programs diverge: the first call at which a rank differs from the majority of its peers."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

_TRIES = 256
"""Maximum number of earlier places to compare."""
_PAST = 4096
"""Maximum number of calls to compare backwards."""


class Parting(NamedTuple):
    """A rank that diverges from the common program."""

    rank: int
    at: int
    """Index in the aligned program of the first difference."""
    certain: bool
    """True if more than half of the ranks that got there agree on a different call."""


class CommonProgram(NamedTuple):
    """The program that the majority runs, and the ranks that diverge from it."""

    program: array[int]
    partings: tuple[Parting, ...]
    ranks: tuple[int, ...]
    """Ranks that follow the program up to their own last call."""


def common(programs: Mapping[int, array[int]], pull: Callable[[int], int]) -> CommonProgram:
    """Return the majority's program among programs that begin at the same call.

    A tie is decided by the call that followed the same history earlier, else by the call whose ranks fewest others wait
    for (`pull`).

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
    return CommonProgram(reference, tuple(partings), tuple(sorted(r for _, ranks in alive for r in ranks)))


def _break_tie(
    alive: list[tuple[array[int], list[int]]], index: int, equals: set[int], pull: Callable[[int], int]
) -> int:
    """Return the call whose ranks fewest others wait for: a guess, as no call has the majority."""
    pulls = {
        token: max(pull(r) for p, ranks in alive if len(p) > index and p[index] == token for r in ranks)
        for token in sorted(equals)
    }
    return min(pulls, key=lambda token: pulls[token])


def first_difference(a: array[int], b: array[int]) -> int | None:
    """Return the first index at which both have a value and the values differ; None if one is a prefix of the other."""
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
    """Return the call that followed the longest earlier match of the program's end, or None if that is ambiguous.

    A match without both calls is shorter than one round, so it does not show which call is due.
    """
    pasts = dict.fromkeys(calls, 0)
    for at in _before(program):
        if program[at + 1] in pasts:
            pasts[program[at + 1]] = max(pasts[program[at + 1]], _alike(program, at))
    (call, longest), *others = sorted(pasts.items(), key=lambda row: -row[1])
    past = {*program[len(program) - longest :]}
    open_ = any(n == longest or (n and not past >= {call, other}) for other, n in others)
    return call if longest and not open_ else None


def expected_calls(program: array[int], most: int = 32) -> array[int]:
    """Predict the next calls: those that followed the longest earlier match of the program's end.

    Training repeats itself, so this is the same place of an earlier step.
    """
    best, begin = 0, 0
    for at in _before(program):
        length = _alike(program, at)
        if length > best:
            best, begin = length, at + 1
    return program[begin : begin + most] if best else array(program.typecode)


def _before(program: array[int]) -> Iterator[int]:
    """Yield earlier positions of the last call, the latest first."""
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
    """Return the length of the common suffix ending at `at` and at the end."""
    length = 0
    end = len(program) - 1
    while length <= at and length < _PAST and program[at - length] == program[end - length]:
        length += 1
    return length
