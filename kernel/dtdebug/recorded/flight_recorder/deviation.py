"""Classifies what a rank did at the call where it diverged from its peers."""

from __future__ import annotations

from array import array
from typing import NamedTuple

from dtdebug.recorded.flight_recorder import source_branches
from dtdebug.recorded.flight_recorder.align import CommonProgram, Parting, expected_calls, first_difference
from dtdebug.recorded.flight_recorder.alignment_tables import AlignedCalls, Tables
from dtdebug.recorded.flight_recorder.argument_diff import arguments
from dtdebug.recorded.flight_recorder.loop_exits import runs_out
from dtdebug.recorded.flight_recorder.rank_program import Symbol
from dtdebug_taxonomy.model.claims import LOOP_ENDED
from dtdebug_taxonomy.model.ranks import Frame, Kind
from dtdebug_taxonomy.stacks.frames import own_frames

_SHIFTS = 32
"""Maximum number of consecutive calls that may be missing or added."""
_SITE = 40
"""Number of bits of a token below the number of its call site."""
_ENOUGH = 64
"""Number of calls after the divergence to compare."""


class Deviation(NamedTuple):
    """One rank's divergence from the program of its peers."""

    rank: int
    kind: Kind
    certain: bool
    """True if a majority, or the program's earlier behaviour, shows which side is right."""
    told: bool
    """True if the kind follows from the records; else it is the likeliest reading."""
    group: str
    """Rank's own group of the call that its peers made."""
    op: str
    seq: int
    position: int
    """Position in the rank's program of the call that it made instead."""
    site: tuple[Frame, ...]
    """Stack of the call that it made."""
    expected_site: tuple[Frame, ...]
    """Stack of the call that its peers made."""
    because: str
    against: tuple[int, ...] = ()
    """Ranks of an equally large side, if no majority decides."""
    peer: int = -1
    """A rank that it is compared with."""
    peer_position: int = -1
    """Position of the compared call in the peer's program."""


def deviation(tables: Tables, aligned: AlignedCalls, common: CommonProgram, parting: Parting) -> Deviation:
    """Classify a divergence from the expected call and the one that was made."""
    rank, index = parting.rank, parting.at
    mine, program = aligned.tokens[rank], common.program
    peer = next((r for r in common.ranks if len(aligned.tokens[r]) > index), common.ranks[0])
    beyond = program + expected_calls(program)
    first = _first_strange_site(tables, aligned, rank, peer, index)
    if first < index:  # an additional call that looks like the due one: only the call sites differ
        index = first
        mine, beyond = _with_sites(tables, aligned, rank, peer, index)
    position = aligned.position(rank, index)
    peer_position = aligned.position(peer, index)
    site, expected_site = tables.site(rank, position), tables.site(peer, peer_position)
    strange = bool(site) and not _is_shared_site(tables, aligned, rank, site)
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
"""Number of calls before the divergence whose call sites are compared."""


def _first_strange_site(tables: Tables, aligned: AlignedCalls, rank: int, peer: int, index: int) -> int:
    """Return the index from which the equal calls before a divergence come from different call sites."""
    while index and (before := index - 1) > index - _BACK:
        site = tables.site(rank, aligned.position(rank, before))
        if not site or site == tables.site(peer, aligned.position(peer, before)):
            break
        index = before
    return index


def _with_sites(
    tables: Tables, aligned: AlignedCalls, rank: int, peer: int, begin: int
) -> tuple[array[int], array[int]]:
    """Return the two programs with call sites encoded into the tokens from `begin` on."""
    numbers: dict[tuple[Frame, ...], int] = {}

    def with_marks(owner: int) -> array[int]:
        tokens = aligned.tokens[owner]
        last = min(len(tokens), begin + _BACK + _ENOUGH)
        sites = (tables.site(owner, aligned.position(owner, i)) for i in range(begin, last))
        marks = (numbers.setdefault(site, len(numbers)) << _SITE for site in sites)
        return tokens[:begin] + array("Q", [t + m for t, m in zip(tokens[begin:last], marks, strict=True)])

    return with_marks(rank), with_marks(peer)


class _Reading(NamedTuple):
    """A rank's calls and its peers' calls from the divergence on."""

    tables: Tables
    mine: array[int]
    theirs: array[int]
    """Peers' program, followed by the calls expected next."""
    at: int
    known: int
    """End of the peers' recorded program."""
    strange: bool
    """True if no other rank calls anything from this call site."""

    @property
    def came(self) -> Symbol:
        return self.tables.call(self.mine[self.at])

    @property
    def due(self) -> Symbol:
        return self.tables.call(self.theirs[self.at])

    def kind(self) -> tuple[Kind, bool, str] | None:
        """Return the kind, whether the records prove it, and why; None if the records end too early."""
        here, there = _words(self.came, self.due)
        skip = _NO_FIT if self.strange else self._fit(ahead=1, behind=0)
        extra, replaced, swapped = self._fit(ahead=0, behind=1), self._fit(ahead=1, behind=1), self._swap_fit()
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
        """Return how long the two agree if calls of theirs are skipped (ahead), or of mine (behind)."""
        best = _NO_FIT
        for shift in range(1, _SHIFTS + 1) if ahead != behind else (1,):
            a, b = self.at + shift * behind, self.at + shift * ahead
            left, right = self.mine[a : a + _ENOUGH], self.theirs[b : b + _ENOUGH]
            if left and right and first_difference(left, right) is None:
                length = min(len(left), len(right))
                best = max(best, _Fit(max(min(length, self.known - b), 0), length, -shift))
        return best

    def _swap_fit(self) -> _Fit:
        """Return the fit if two neighbouring calls are swapped and all later calls agree."""
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
    """Agreement of two programs after a shift; greater is better."""

    known: int
    """Number of calls that agree with the peers' recorded calls."""
    length: int
    """The same, including the calls that the peers are expected to make next."""
    closeness: int
    """Negative number of calls that were shifted."""


_NO_FIT = _Fit(0, 0, 0)


def _is_shared_site(tables: Tables, aligned: AlignedCalls, rank: int, site: tuple[Frame, ...]) -> bool:
    """True if another rank of the role also calls something from that site."""
    return any(site in tables.programs[other].site_table for other in aligned.tokens if other != rank)


def _by_source(
    read: _Reading, site: tuple[Frame, ...], expected_site: tuple[Frame, ...], *, came_by: bool
) -> tuple[Kind, bool, str]:
    """Classify a divergence by the source of the two call sites, else by the most common kind.

    Used if the records end too early. `came_by`: the rank may have called something from its peers' place before.
    """
    here, there = _words(read.came, read.due)
    pair = source_branches.fork(site, expected_site)
    if pair is not None:
        one, other = pair
        apart = source_branches.exclusive(one.file, one.line, other.line)
        if apart:
            return "replaced", True, f"a condition lets only one of {here} and {there} run"
        if source_branches.left_loop(one.file, other.line, one.line):
            left = LOOP_ENDED if runs_out(other) else "it has left the loop in which the others call"
            return "skipped", True, f"{left} {there}"
        inner = own_frames(expected_site)
        deepest = inner[-1] if inner and inner[-1] != other else None
        if deepest and source_branches.comes_back(one.file, other.line, one.line) and runs_out(deepest):
            return "skipped", True, f"{LOOP_ENDED} {there}"
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
    """Describe two calls; if they would look alike, by the arguments that differ."""
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
