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


def test_two_ranks_in_two_collectives_disagree(tmp_path):
    """What each called and where is said, and not who is wrong."""
    found = verdict(tmp_path, "all_reduce", "barrier")
    assert ("replaced", (), (0, 1)) == (found.kind, found.culprits, found.waiting)
    assert "rank 0 called all_reduce of world at /job/train.py:20" in found.summary
    assert "rank 1 called barrier of world at /job/train.py:17; which of them is wrong is not known" in found.summary
    assert {(0,), (1,)} == {a.culprits for a in found.alternatives}


def test_all_in_one_collective_is_no_fault_of_a_rank(tmp_path):
    """No rank is missing."""
    assert "fabric" == verdict(tmp_path, "all_reduce", "all_reduce", "all_reduce").kind
