"""Group membership, and ranks that run the same program.

Groups of one kind (all tensor-parallel groups, say) form an axis: they are of equal size, share no rank, and carry
the same description or were made at the same point of the program. Ranks with the same axes have the same role and
are expected to make the same calls.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from dtdebug.recorded.flight_recorder.rank_program import P2P, Program
from dtdebug_taxonomy.model.ranks import RankState

DEFAULT = "0"
"""Name of PyTorch's default group."""
_ANONYMOUS = ("", "undefined", "default_pg")
_PIPELINE = re.compile(r"(?i)(?:^|[_\W])(?:pp|pipe|pipeline)(?:$|[_\W])|pipeline")
_AXES = 256
"""Number of axes of one kind that a group is compared with."""


class Layout:
    """The groups of a run."""

    def __init__(self, programs: Mapping[int, Program], states: Sequence[RankState] = ()) -> None:
        self.members = _members(programs, states)
        """Group -> global ranks in order."""
        self.descriptions = _descriptions(programs, states)
        self.axes = _axes(self.members, self.descriptions, programs)
        """Group -> number of its axis."""
        world = max((len(m) for m in self.members.values()), default=0)
        told = max((s.world_size or 0 for s in states), default=0)
        highest = max([*programs, *(s.rank for s in states if s.rank is not None)], default=-1) + 1
        self.world_size = max(world, told, highest)

    def name(self, group: str) -> str:
        """Return the display name of a group."""
        desc = self.descriptions.get(group, "")
        members = self.members.get(group, ())
        if desc not in _ANONYMOUS:
            return f"{desc} ({group})" if desc != group else group
        if len(members) == self.world_size and self.world_size:
            return "world"
        return f"group {group}"

    def pipelines(self, programs: Mapping[int, Program]) -> set[int]:
        """Return axes along which ranks run different programs: by description, or because they send to each other."""
        named = {self.axes[g] for g, d in self.descriptions.items() if g in self.axes and _PIPELINE.search(d)}
        found = set()
        for p in programs.values():
            if not any(s.op in P2P for s in p.symbol_table):
                continue
            sent = {number for number, s in enumerate(p.symbol_table) if s.op in P2P}
            passing = {index for index, number in zip(p.order, p.symbols, strict=True) if number in sent}
            for index, name in enumerate(p.names):
                if name in self.axes and index in passing:
                    found.add(self.axes[name])
        whole = {self.axes[g] for g, m in self.members.items() if len(m) == self.world_size and g in self.axes}
        return named | (found - whole)

    def roles(self, programs: Mapping[int, Program]) -> list[list[int]]:
        """Return the sets of ranks that are expected to make the same calls."""
        stages = self.pipelines(programs)
        groups_of: dict[int, list[str]] = defaultdict(list)
        for group, ranks in self.members.items():
            for rank in ranks:
                groups_of[rank].append(group)
        roles: dict[tuple[object, ...], list[int]] = defaultdict(list)
        for rank in sorted(programs):
            mine = groups_of[rank]
            place = tuple(
                sorted((self.axes[g], self.members[g].index(rank)) for g in mine if self.axes.get(g) in stages)
            )
            roles[(frozenset(self.axes[g] for g in mine if g in self.axes), place)].append(rank)
        return list(roles.values())


def _members(programs: Mapping[int, Program], states: Sequence[RankState]) -> dict[str, tuple[int, ...]]:
    told: dict[str, tuple[int, ...]] = {}
    seen: dict[str, set[int]] = defaultdict(set)
    for s in states:
        for live in s.groups:
            told.setdefault(live.name, live.ranks)
    for rank, p in programs.items():
        for name, g in p.groups.items():
            if g.ranks:
                told.setdefault(name, g.ranks)
            seen[name].add(rank)
    members = {name: tuple(sorted(ranks)) for name, ranks in seen.items()}
    members |= {name: ranks for name, ranks in told.items() if ranks}
    if not told.get(DEFAULT) and (
        DEFAULT in members or not members
    ):  # PyTorch's default group: all ranks, including those that left no dump
        highest = max([*programs, *(s.rank for s in states if s.rank is not None)], default=-1)
        told_size = max((s.world_size or 0 for s in states), default=0)
        shown = max((p.sizes.get(DEFAULT, 0) for p in programs.values()), default=0)
        members[DEFAULT] = tuple(range(max(highest + 1, shown, told_size)))
        _complete(members, told, programs)
    return members


def _complete(
    members: dict[str, tuple[int, ...]], told: Mapping[str, tuple[int, ...]], programs: Mapping[int, Program]
) -> None:
    """Add a single rank without a dump to the groups that are smaller than they should be."""
    shown = {name: size for p in programs.values() for name, size in p.sizes.items()}
    made_together: dict[int, set[str]] = defaultdict(set)
    for p in programs.values():
        for name, number in p.ids.items():
            made_together[number].add(name)
    short = set()
    for names in made_together.values():
        size = max(max(len(members[name]), shown.get(name, 0)) for name in names)
        short |= {name for name in names if len(members[name]) < size and not told.get(name)}
    absent = set(members[DEFAULT]) - programs.keys() or {len(members[DEFAULT])}
    if len(absent) == 1 and short and all(sum(n in short for n in names) < 2 for names in made_together.values()):
        members[DEFAULT] = tuple(sorted({*members[DEFAULT], *absent}))
        for name in short:
            members[name] = tuple(sorted({*members[name], *absent}))


def _descriptions(programs: Mapping[int, Program], states: Sequence[RankState]) -> dict[str, str]:
    found: dict[str, str] = {}
    for p in programs.values():
        for name, g in p.groups.items():
            if g.desc:
                found.setdefault(name, g.desc)
    for s in states:
        for member in s.groups:
            if member.desc:
                found.setdefault(member.name, member.desc)
    return found


def _axes(
    members: Mapping[str, tuple[int, ...]], descriptions: Mapping[str, str], programs: Mapping[int, Program]
) -> dict[str, int]:
    local = {name: number for p in programs.values() for name, number in p.ids.items()}
    axes: dict[str, int] = {}
    taken: list[tuple[set[int], set[int]]] = []  # ranks, local numbers
    alike: dict[tuple[int, str], list[int]] = defaultdict(list)  # size and description -> axes
    for name in sorted(members, key=_creation):
        ranks, desc = set(members[name]), descriptions.get(name, "")
        kind = "" if desc in _ANONYMOUS else re.sub(r"\d+", "#", desc)
        fitting = [i for i in alike[len(ranks), kind][:_AXES] if ranks.isdisjoint(taken[i][0])]
        same = [i for i in fitting if local.get(name) in taken[i][1]]
        if fitting:
            axis = (same or fitting)[0]
        else:
            axis = len(taken)
            taken.append((set(), set()))
            alike[len(ranks), kind].append(axis)
        taken[axis][0].update(ranks)
        if name in local:
            taken[axis][1].add(local[name])
        axes[name] = axis
    return axes


def _creation(name: str) -> tuple[int, int, str]:
    """Return the sort key of a group: by number in the order of creation; other names last."""
    return (0, int(name), "") if name.isdigit() and len(name) < 10 else (1, 0, name)
