"""Programs of all ranks in one numbering: by group for matching, by role for program order."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence

from dtdebug.recorded.flight_recorder.group_layout import Layout
from dtdebug.recorded.flight_recorder.rank_program import P2P, Program, Symbol
from dtdebug_taxonomy.model.ranks import Frame

_NEVER = 1 << 62
_AXIS = 1 << 20
"""A token is axis * _AXIS + number of the call."""


class AlignedCalls:
    """Tokens of some ranks from the first call on that all of them still have."""

    def __init__(self) -> None:
        self.tokens: dict[int, array[int]] = {}
        self._kept: dict[int, Sequence[int]] = {}

    def add(self, rank: int, tokens: array[int], kept: Sequence[int]) -> None:
        """Add a rank's tokens, and the position of each in its program."""
        self.tokens[rank] = tokens
        self._kept[rank] = kept

    def position(self, rank: int, index: int) -> int:
        """Return the position in the rank's program of a token."""
        return self._kept[rank][index]


class Tables:
    """All programs with one numbering of calls and groups."""

    def __init__(self, programs: Mapping[int, Program], layout: Layout) -> None:
        self.programs, self.layout = programs, layout
        self.calls: list[Symbol] = []
        """Number -> call, reduced to the part on which the ranks of a group must agree."""
        self._numbers: dict[Symbol, int] = {}
        self._translated: dict[int, array[int]] = {}
        self._places: dict[int, dict[str, list[int]]] = {}
        known: dict[tuple[Symbol, ...], list[int]] = {}
        for rank, p in programs.items():
            table = tuple(p.symbol_table)
            numbers = known.get(table)
            if numbers is None:
                numbers = known[table] = [self._number(s.agreed_part()) for s in table]
            self._translated[rank] = array("I", map(numbers.__getitem__, p.symbols))

    def _number(self, call: Symbol) -> int:
        number = self._numbers.setdefault(call, len(self.calls))
        if number == len(self.calls):
            self.calls.append(call)
        return number

    def call(self, token: int) -> Symbol:
        """Return the call of a token."""
        return self.calls[token % _AXIS]

    def axis(self, token: int) -> int:
        """Return the axis of a token of a role."""
        return token % (1 << 40) // _AXIS

    def group_on(self, rank: int, axis: int) -> str | None:
        """Return the group of a rank on an axis."""
        for group in self.layout.axes:
            if self.layout.axes[group] == axis and rank in self.layout.members[group]:
                return group
        return None

    def of_group(self, group: str) -> AlignedCalls:
        """Return the collectives of a group's members, by sequence number."""
        columns = {}
        high = self.layout.axes.get(group, 0) * _AXIS
        for rank in self.layout.members.get(group, ()):  # a group that only a source line names has no members
            if rank in self.programs and (places := self._collectives(rank).get(group)):
                columns[rank] = places
        begin = max((self.programs[rank].seqs[places[0]] for rank, places in columns.items()), default=0)
        aligned = AlignedCalls()
        for rank, places in columns.items():
            seqs, calls = self.programs[rank].seqs, self._translated[rank]
            kept = places if seqs[places[0]] >= begin else [i for i in places if seqs[i] >= begin]
            aligned.add(rank, array("Q", [high + calls[i] for i in kept]), kept)
        return aligned

    def _collectives(self, rank: int) -> dict[str, list[int]]:
        """Return group -> positions of a rank's collectives on it."""
        if rank not in self._places:
            found = self._places[rank] = defaultdict(list)
            p, passing = self.programs[rank], [call.op in P2P for call in self.calls]
            for position, (index, call) in enumerate(zip(p.order, self._translated[rank], strict=True)):
                if not passing[call]:
                    found[p.names[index]].append(position)
        return self._places[rank]

    def of_role(self, ranks: Sequence[int]) -> AlignedCalls:
        """Return the calls of ranks of one role over all their groups, in program order."""
        begin: dict[tuple[int, bool], int] = {}
        columns = {}
        for rank in ranks:
            p = self.programs[rank]
            axes = [self.layout.axes.get(name, 0) for name in p.names]
            passing = [self.calls[call].op in P2P for call in self._translated[rank]] if not p.whole else []
            first: dict[tuple[int, bool], int] = {}
            if not p.whole:
                for place, (index, seq, p2p) in enumerate(zip(p.order, p.seqs, passing, strict=True)):
                    if not p.active_only:
                        # If the buffer's end cuts a batch, one rank may have more left than another.
                        first.setdefault((axes[index], p2p), seq + (p2p and not place))
                    elif p2p:  # their entries do not show which of them have ended
                        first[axes[index], p2p] = _NEVER
                for name, g in p.groups.items():
                    first.setdefault((self.layout.axes.get(name, 0), False), g.completed + 1)
            for key, seq in first.items():
                begin[key] = max(begin.get(key, 0), seq)
            columns[rank] = axes
        aligned = AlignedCalls()
        same: dict[tuple[object, ...], tuple[array[int], Sequence[int]]] = {}
        for rank, axes in columns.items():
            p, calls = self.programs[rank], self._translated[rank]
            shape = (tuple(axes), p.order.tobytes(), calls.tobytes(), p.seqs.tobytes() if begin else b"")
            if shape in same:  # most ranks of a role do the same
                aligned.add(rank, *same[shape])
                continue
            kept: Sequence[int] = range(len(p.order))
            if begin:
                kept = [
                    i for i in kept if p.seqs[i] >= begin.get((axes[p.order[i]], self.calls[calls[i]].op in P2P), 0)
                ]
            high = [axis * _AXIS for axis in axes]
            same[shape] = array("Q", [high[p.order[i]] + calls[i] for i in kept]), kept
            aligned.add(rank, *same[shape])
        return aligned

    def site(self, rank: int, position: int) -> tuple[Frame, ...]:
        """Return the user's frames of a call, innermost last."""
        return self.programs[rank].site(position)
