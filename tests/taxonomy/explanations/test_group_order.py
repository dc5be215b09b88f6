"""Ranks that wait on one line in different groups, counted as each made them."""

import msgspec

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.ranks import Frame, Group, Operation, RankState
from dtdebug_taxonomy.model.snapshot import Snapshot

FILE = "/w/train.py"


def state(rank, group, names=("1", "2"), members=(0, 1)):
    groups = (Group(name="0", ranks=(0, 1)), *(Group(name=n, ranks=members) for n in names))
    return RankState(
        rank=rank, world_size=2, groups=groups, pending=Operation(op="all_reduce", group=group, seq=1),
        stack=(Frame(file=FILE, line=20, function="main", code="dist.all_reduce(g, group=pair)"),),
    )  # fmt: skip


def causes(*states):
    found = diagnose(load(), Snapshot(situation="it hangs", ranks=states))
    return [(a.cause, a.title, a.line) for a in found.advice if a.cause == "groups-made-in-another-order"]


def test_groups_of_another_number_are_told_apart():
    said = (
        "The group of train.py:20 is not the same on all ranks: of those made by `new_group`, it is the 1st on rank 0, "
        "the 2nd on rank 1"
    )
    assert causes(state(0, "1"), state(1, "2")) == [("groups-made-in-another-order", said, 20)]


def test_one_group_and_other_members_or_lines_are_none():
    """Ranks of other groups may well wait on one line: each in its own."""
    assert not causes(state(0, "1"), state(1, "1"))
    assert not causes(state(0, "0"), state(1, "0"))
    assert not causes(state(0, "1"), state(1, "2", members=(1, 2)))
    later = msgspec.structs.replace(state(1, "2"), pending=Operation(op="all_reduce", group="2", seq=3))
    assert not causes(state(0, "1"), later)
