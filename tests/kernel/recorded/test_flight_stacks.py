"""Verdicts on ranks that left no record: their stacks are all that is known, as of a job that nobody armed."""

import msgspec
import pytest

from dtdebug.recorded.flight_recorder import analyse
from dtdebug_taxonomy.model.ranks import Frame, Operation, RankState


def verdict(folder, *operations):
    """What is said of ranks that stand in these operations."""
    states = [
        RankState(
            rank=rank,
            world_size=len(operations),
            alive=True,
            pid=100 + rank,
            stack=(Frame("/job/train.py", 10 + len(op.op), "train"),),
            pending=op,
        )
        for rank, op in enumerate(Operation(op=op) if isinstance(op, str) else op for op in operations)
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


def test_the_other_side_of_a_receive_is_no_root(tmp_path):
    """Two ranks that receive from different ones call nothing that has a root."""
    found = verdict(tmp_path, *(Operation(op="irecv", group="0", peer=peer) for peer in (1, 0, 0)))

    assert "wrong_root" != found.kind
    assert "root" not in found.summary


def test_calls_of_threads_on_groups_of_their_own_are_not_compared_in_order(tmp_path):
    """Each rank's two threads take turns as they like; one thread of rank 1 has stopped."""
    for rank, order in enumerate(("aabbaabba", "abababab", "bbaabbaaa")):
        done = {"a": 0, "b": 0}
        entries = []
        for which in order:
            done[which] += 1
            last = which == "a" and done[which] == order.count("a") and rank != 1
            entries.append(
                {
                    "record_id": len(entries),
                    "pg_id": int(which == "a"),
                    "process_group": ["1", "side"] if which == "a" else ["0", "default_pg"],
                    "thread_name": "python",
                    "thread_id": which,
                    "collective_seq_id": done[which],
                    "profiling_name": "gloo:all_gather" if which == "a" else "gloo:all_reduce",
                    "input_sizes": [[1]],
                    "input_dtypes": ["Float"],
                    "output_sizes": [[1]],
                    "output_dtypes": ["Float"],
                    "state": "scheduled",
                    "retired": not last,
                    "time_created_ns": len(entries) * 10**9,
                }
            )
        dump = {"version": "2.10", "pg_config": {}, "pg_status": {}, "entries": entries}
        (tmp_path / f"rank_{rank}.json").write_bytes(msgspec.json.encode(dump))
    found = analyse(tmp_path).verdict

    assert (1,) == found.culprits
    assert "all_gather #5" in found.summary
    assert "all_reduce" not in found.summary
