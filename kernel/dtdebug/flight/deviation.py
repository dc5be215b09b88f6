"""Names what a rank did at the call where it left the program of its peers."""

from __future__ import annotations

from array import array
from typing import NamedTuple

from dtdebug.flight import source
from dtdebug.flight.align import Common, Parting, expected, first_difference
from dtdebug.flight.differences import arguments
from dtdebug.flight.program import Symbol
from dtdebug.flight.tables import Aligned, Tables
from dtdebug.flight.way_out import runs_out
from dtdebug_taxonomy.claims import LOOP_ENDED
from dtdebug_taxonomy.ranks import Frame, Kind

_SHIFTS = 32
"""Calls in a row that may be left out or added."""
_SITE = 40
"""Bits of a token below its place."""
_ENOUGH = 64
"""Calls behind the parting that are compared."""


class Deviation(NamedTuple):
    """One rank's departure from the program of its peers."""

    rank: int
    kind: Kind
    certain: bool
    """A majority, or what the program did before, says who is right."""
    told: bool
    """The kind follows from the records; else it is the likeliest reading."""
    group: str
    """The rank's own group of the call that its peers made."""
    op: str
    seq: int
    position: int
    """Place in the rank's program of the call that it made instead."""
    site: tuple[Frame, ...]
    """Where it called that."""
    expected_site: tuple[Frame, ...]
    """Where its peers made the call that it did not make so."""
    because: str
    against: tuple[int, ...] = ()
    """Ranks that are as many and did it otherwise, where no majority says who is right."""
    peer: int = -1
    """One of the ranks that it is compared with."""
    peer_position: int = -1
    """Place in the peer's program of the call that is compared."""


def deviation(tables: Tables, aligned: Aligned, common: Common, parting: Parting) -> Deviation:
    """Reads a parting: what was expected, what came, and what that makes it."""
    rank, index = parting.rank, parting.at
    mine, program = aligned.tokens[rank], common.program
    peer = next((r for r in common.ranks if len(aligned.tokens[r]) > index), common.ranks[0])
    beyond = program + expected(program)
    first = _first_strange_site(tables, aligned, rank, peer, index)
    if first < index:  # an additional call that looks like the due one: only the places tell
        index = first
        mine, beyond = _with_sites(tables, aligned, rank, peer, index)
    position = aligned.position(rank, index)
    peer_position = aligned.position(peer, index)
    site, expected_site = tables.site(rank, position), tables.site(peer, peer_position)
    strange = bool(site) and not _seen(tables, aligned, rank, site)
    read = _Reading(tables, mine, beyond, index, len(program), strange)
    came_by = expected_site in tables.programs[rank].site_table or not tables.programs[rank].whole
    kind, told, because = read.kind() or _by_source(read, site, expected_site, came_by=came_by)
    token = program[index]
    peers = tables.programs[peer]
    group = tables.group_on(rank, tables.axis(token)) or peers.group(peer_position)
    return Deviation(
        rank, kind, parting.certain, told, group, tables.call(token).op, peers.seqs[peer_position], position, site,
        expected_site, because, () if parting.certain else common.ranks, peer, peer_position,
    )  # fmt: skip


_BACK = 64
"""Calls before the parting whose places are compared."""


def _first_strange_site(tables: Tables, aligned: Aligned, rank: int, peer: int, index: int) -> int:
    """Where the calls before a parting, alike as they are, begin to be made from other places than the peers'."""
    while index and (before := index - 1) > index - _BACK:
        site = tables.site(rank, aligned.position(rank, before))
        if not site or site == tables.site(peer, aligned.position(peer, before)):
            break
        index = before
    return index


def _with_sites(tables: Tables, aligned: Aligned, rank: int, peer: int, begin: int) -> tuple[array[int], array[int]]:
    """The two programs with the places of calls made part of them, from a call on."""
    numbers: dict[tuple[Frame, ...], int] = {}

    def marked(owner: int) -> array[int]:
        tokens = aligned.tokens[owner]
        last = min(len(tokens), begin + _BACK + _ENOUGH)
        sites = (tables.site(owner, aligned.position(owner, i)) for i in range(begin, last))
        marks = (numbers.setdefault(site, len(numbers)) << _SITE for site in sites)
        return tokens[:begin] + array("Q", [t + m for t, m in zip(tokens[begin:last], marks, strict=True)])

    return marked(rank), marked(peer)


class _Reading(NamedTuple):
    """A rank's calls and its peers' from the parting on."""

    tables: Tables
    mine: array[int]
    theirs: array[int]
    """The peers' program, and behind its end what is expected."""
    at: int
    known: int
    """Where the peers' program ends."""
    strange: bool
    """No other rank calls anything from the place where this one does."""

    @property
    def came(self) -> Symbol:
        return self.tables.call(self.mine[self.at])

    @property
    def due(self) -> Symbol:
        return self.tables.call(self.theirs[self.at])

    def kind(self) -> tuple[Kind, bool, str] | None:
        """What was done, whether the records tell it, and why; None where they end too early to say anything."""
        here, there = _words(self.came, self.due)
        skip = _NO_FIT if self.strange else self._fit(ahead=1, behind=0)
        extra, replaced, swapped = self._fit(ahead=0, behind=1), self._fit(ahead=1, behind=1), self._swapped()
        if swapped.length and swapped >= max(skip, extra, replaced):
            return "replaced", True, f"it made {here} before {there}, the others after it"
        if skip.length and skip > max(extra, replaced):
            follow = "is the one that follows" if skip.length == 1 else "are those that follow"
            return "skipped", True, f"its next {_calls(skip.length)} {follow} {there} in the others' program"
        if extra.length and extra > max(replaced, skip):
            return "extra", True, f"after {here} it made the {_calls(extra.length)} that the others make here"
        same_group = self.tables.axis(self.mine[self.at]) == self.tables.axis(self.theirs[self.at])
        if same_group and self.came.op == self.due.op:
            size = (self.came.inputs, self.came.outputs) != (self.due.inputs, self.due.outputs)
            told = replaced.length > 0 or not self.strange
            return "wrong_size" if size else "wrong_dtype", told, f"it called {here}, the others {there}"
        if replaced.length:
            return "replaced", True, f"it called {here}, the others {there}, and both went on alike"
        if skip.length:
            return "skipped", True, f"it is at {here}, which follows {there} in the others' program"
        if self.strange and self.mine[self.at] in self.theirs[self.at : self.known]:
            return "replaced", False, f"it called {here} at a place of its own and before {there}, the others after it"
        return None

    def _fit(self, *, ahead: int, behind: int) -> _Fit:
        """How long the two agree once calls of theirs are left out (ahead), or of mine (behind)."""
        best = _NO_FIT
        for shift in range(1, _SHIFTS + 1) if ahead != behind else (1,):
            a, b = self.at + shift * behind, self.at + shift * ahead
            left, right = self.mine[a : a + _ENOUGH], self.theirs[b : b + _ENOUGH]
            if left and right and first_difference(left, right) is None:
                length = min(len(left), len(right))
                best = max(best, _Fit(max(min(length, self.known - b), 0), length, -shift))
        return best

    def _swapped(self) -> _Fit:
        """Two neighbouring calls in the other order, and all that follows in the same."""
        here, there = self.mine[self.at : self.at + 2], self.theirs[self.at : self.at + 2]
        behind = self.at + 2
        if (
            len(here) < 2
            or here != there[::-1]
            or first_difference(self.mine[behind:], self.theirs[behind:]) is not None
        ):
            return _NO_FIT
        length = min(len(self.mine), len(self.theirs)) - self.at
        return _Fit(max(min(length, self.known - self.at), 0), length, 0)


class _Fit(NamedTuple):
    """How well two programs agree once one is shifted; the greater the better."""

    known: int
    """Calls that agree with what the others did."""
    length: int
    """The same, with what they are expected to do next."""
    closeness: int
    """Minus the calls that were shifted."""


_NO_FIT = _Fit(0, 0, 0)


def _seen(tables: Tables, aligned: Aligned, rank: int, site: tuple[Frame, ...]) -> bool:
    """Another rank of the role calls something from there too."""
    return any(site in tables.programs[other].site_table for other in aligned.tokens if other != rank)


def _by_source(
    read: _Reading, site: tuple[Frame, ...], expected_site: tuple[Frame, ...], *, came_by: bool
) -> tuple[Kind, bool, str]:
    """The records end here: what the source says of the two places, or else what is most common.

    `came_by`: the rank may have called something from its peers' place before.
    """
    here, there = _words(read.came, read.due)
    pair = source.fork(site, expected_site)
    if pair is not None:
        one, other = pair
        apart = source.exclusive(one.file, one.line, other.line)
        if apart:
            return "replaced", True, f"a condition lets only one of {here} and {there} run"
        if source.left_loop(one.file, other.line, one.line):
            left = LOOP_ENDED if runs_out(other) else "it has left the loop in which the others call"
            return "skipped", True, f"{left} {there}"
        if read.strange and apart is False and not came_by and one.line > other.line:
            return "skipped", True, f"it is at {here}, behind {there} in the source, and was never there"
        if read.strange and apart is False:
            return "extra", True, f"it called {here} at a place where no other rank calls anything"
    if read.strange and read.came.inputs != read.due.inputs:
        return "extra", False, f"it called {here} at a place where no other rank calls anything"
    return "replaced", False, f"it called {here}, the others {there}"


def _calls(number: int) -> str:
    return "call" if number == 1 else f"{number} calls"


def _words(came: Symbol, due: Symbol) -> tuple[str, str]:
    """Two calls in words: where these would look alike, what tells them apart."""
    here, there = _word(came), _word(due)
    if here != there or came == due:
        return here, there
    return tuple(f"{call.op}({told})" for call, told in zip((came, due), arguments(came, due), strict=True))  # type: ignore[return-value]


def _word(call: Symbol) -> str:
    sizes = call.inputs or call.outputs
    shape = " x ".join(str(list(s)) for s in sizes[:2]) if sizes else ""
    dtype = call.dtypes[0] if call.dtypes and call.dtypes[0] else ""
    about = " ".join(filter(None, (shape, dtype)))
    return f"{call.op}({about})"
