"""Verdicts on ranks that left no record: their stacks are all that is known, as of a job that nobody armed."""

import pytest

from dtdebug.flight import analyse
from dtdebug_taxonomy.ranks import Frame, Operation, RankState


def verdict(folder, *operations):
    """What is said of ranks that stand in these operations."""
    states = [
        RankState(
            rank=rank,
            world_size=len(operations),
            alive=True,
            pid=100 + rank,
            stack=(Frame("/job/train.py", 10 + len(op), "train"),),
            pending=Operation(op=op),
        )
        for rank, op in enumerate(operations)
    ]
    return analyse(folder, states=states, moving=False).verdict


@pytest.mark.parametrize(
    ("operations", "culprits", "waiting"),
    [
        (("all_reduce", "broadcast", "broadcast"), (0,), (1, 2)),
        (("barrier", "barrier", "barrier", "all_gather"), (3,), (0, 1, 2)),
        (("all_reduce", "barrier", "all_reduce", "barrier", "all_reduce"), (1, 3), (0, 2, 4)),
    ],
)
def test_ranks_in_another_collective_than_most_are_named(tmp_path, operations, culprits, waiting):
    """The call's name is all that there is to go by, so it is not sure."""
    found = verdict(tmp_path, *operations)
    assert ("replaced", culprits, waiting) == (found.kind, found.culprits, found.waiting)
    assert found.confidence <= 0.6


def test_two_ranks_in_two_collectives_accuse_each_other(tmp_path):
    """Neither is in the majority."""
    found = verdict(tmp_path, "all_reduce", "barrier")
    assert ("not_arrived", (0, 1)) == (found.kind, found.culprits)
    assert "each other" in found.summary


def test_all_in_one_collective_is_no_fault_of_a_rank(tmp_path):
    """Nobody lacks."""
    assert "fabric" == verdict(tmp_path, "all_reduce", "all_reduce", "all_reduce").kind
