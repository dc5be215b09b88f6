"""Verdicts from what PyTorch prints: real outputs of gloo jobs, and every rank's words put to the vote.

The files in `printed/` are what jobs of two to four ranks printed under TORCH_DISTRIBUTED_DEBUG=DETAIL, or with a
monitored barrier; paths are shortened.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import TESTS

from dtdebug.cli.main import main
from dtdebug.errors import FOUND
from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.flight_recorder.source_branches import exclusive
from dtdebug_taxonomy.model.ranks import CallSite, CollectiveRef
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.verdicts import from_log

PRINTED = TESTS / "printed"
SIDE = (
    "Rank {} is running collective: CollectiveFingerPrint(SequenceNumber={}, OpType={}, TensorShape=[{}], "
    "TensorDtypes={}, TensorDeviceTypes=TensorOptions(dtype=float (default)))"
)


def of(text, **more):
    """The verdict on a text."""
    return from_log.verdict_of_log(Snapshot(output=clean(text), **more), exclusive)


def printed(name):
    """The verdict on a recorded output."""
    return of((PRINTED / f"{name}.txt").read_text())


@pytest.mark.parametrize(
    ("name", "kind", "culprit"),
    [
        ("skip", "skipped", 2),
        ("guard", "extra", 2),
        ("size", "wrong_size", 2),
        ("dtype", "wrong_dtype", 2),
        ("sub", "wrong_size", 3),
        ("late", "not_arrived", 2),
        ("barrier", "not_arrived", 2),
        ("raises", "dead", 2),
        ("dead", "dead", 2),
    ],
)
def test_the_rank_that_was_made_to_fail_is_named(name, kind, culprit):
    """And what it did, though each rank accuses only the first other that differs."""
    found = printed(name)

    assert (kind, (culprit,)) == (found.kind, found.culprits)
    assert found.summary.startswith(f"Rank {culprit} ")
    assert culprit not in found.waiting
    assert found.evidence


def test_one_call_more_and_another_call_are_both_offered():
    """A barrier in place of an all-reduce: without the source the text cannot tell them apart, and says so."""
    found = printed("replaced")

    assert (2,) == found.culprits
    assert "replaced" in {found.kind, *(other.kind for other in found.alternatives)}
    assert all(other.refute for other in found.alternatives)


def test_the_verdict_says_where_and_what():
    """Both call sites in the user's code, the collective of the others and its number."""
    found = printed("skip")

    assert CallSite(2, "/home/user/job.py", 33, "<module>") == found.sites[0]
    assert CallSite(0, "/home/user/job.py", 27, "<module>") == found.sites[1]
    assert CollectiveRef("all_reduce", 9) == found.collective
    assert (0, 1, 3) == found.waiting
    assert "all_gather #9 of [3] Float (job.py:33)" in found.summary


def test_ranks_of_a_group_are_translated_to_ranks_of_the_job():
    """In a group of ranks 1 to 3 PyTorch counts from 0: the line's prefix tells who speaks."""
    found = printed("sub")

    assert ((3,), (1, 2)) == (found.culprits, found.waiting)


@pytest.mark.parametrize("name", ["two", "spawn"])
def test_one_against_one_is_no_majority(name):
    """Two ranks that differ, or one report alone: what each called is said, and no rank is named as wrong."""
    found = printed(name)

    assert ((), (0, 1)) == (found.culprits, found.waiting)
    assert found.summary.endswith("it is not known which of them is wrong.")
    assert "disagree: rank 0 is in " in found.summary
    assert ", rank 1 is in " in found.summary


def alone(name, rank):
    """The verdict on what one rank of a recorded output printed."""
    lines = (PRINTED / f"{name}.txt").read_text().splitlines()
    return of("\n".join(line for line in lines if line.startswith(f"[rank{rank}]")))


def test_one_ranks_words_say_that_another_differs_though_it_can_not_read_its_call():
    """A call without tensors is read as garbage (here GATHER and REDUCE): that it's another one is known."""
    of_tensors, of_barrier = alone("replaced", 1), alone("replaced", 2)

    assert of_tensors.summary == (
        "The ranks disagree: rank 1 is in all_reduce #9 of [4] Float (job.py:27), rank 2 is in another one without "
        "tensors, such as a barrier (the message can't show which); it is not known which of them is wrong."
    )
    assert of_barrier.summary.startswith(
        "The ranks disagree: rank 2 is in barrier #9 (job.py:25), rank 0 is in another "
    )
    assert [{1}, {2}] == [{rank for claim in v.claims for rank in claim.ranks} for v in (of_tensors, of_barrier)]
    assert "REDUCE" not in of_tensors.summary
    assert "ather" not in of_barrier.summary


def test_a_scalar_that_another_rank_reduces_is_no_garbage():
    """The loss has no dimension: its shape is printed as []."""
    sides = SIDE.format(0, 4, "ALLREDUCE", "", "Float"), SIDE.format(1, 4, "ALLREDUCE", "8", "Float")
    found = of(f"[rank1]: RuntimeError: Detected mismatch between collectives on ranks. {sides[1]}, but {sides[0]}.")

    assert ("wrong_size", ()) == (found.kind, found.culprits)
    assert "rank 0 is in all_reduce #4 of Float, rank 1 is in all_reduce #4 of [8] Float" in found.summary


def test_a_rank_that_waits_elsewhere_is_not_blamed_for_it():
    """Rank 0 hangs in another collective and says so; that others wait for it makes it no culprit."""
    found = printed("root")
    assert ("not_understood", (), (0, 1, 2, 3)) == (found.kind, found.culprits, found.waiting)


def test_a_silent_first_rank_is_named():
    """All ranks wait for rank 0, which printed nothing: it never came to the barrier."""
    reached = (
        "[rank{0}]: RuntimeError: Rank {0} successfully reached monitoredBarrier, but received errors while waiting "
        "for send/recv from rank 0."
    )
    text = "\n".join(reached.format(rank) for rank in (1, 2, 3))

    raised = text + "\n[rank0]: ValueError: no such file"

    assert ("not_arrived", (0,), (1, 2, 3)) == (of(text).kind, of(text).culprits, of(text).waiting)
    assert ("dead", (0,)) == (of(raised).kind, of(raised).culprits)


def test_a_barrier_of_some_ranks_does_not_name_others():
    """Rank 4 is the first of its group: its "Ranks 1" is not rank 1 of the job."""
    found = of("[rank4]: RuntimeError: [Rank 0]: Ranks 1 failed to pass monitoredBarrier in 3000 ms")
    assert ("not_understood", (), (4,)) == (found.kind, found.culprits, found.waiting)


def test_what_a_remote_call_raises_is_of_the_worker_that_was_called():
    """Not of the caller, which prints it with the worker's traceback within its own."""
    found = printed("rpc")

    assert ("dead", (1,)) == (found.kind, found.culprits)
    assert "Rank 1 raised ValueError: bad shard at /work/train.py:12" in found.summary


HOROVOD = "WARNING: One or more tensors were submitted to be reduced by subset of ranks.\n"


@pytest.mark.parametrize(
    ("rows", "culprits"),
    [
        (
            "mpirun -np 4 python train.py\nStalled ops: a/grad_1 [ready ranks: 3, 0, 1], b [ready ranks: 1, 0, 3]",
            (2,),
        ),
        ("Stalled ops:grad_1 [missing ranks: 0, 2]\ngrad_2 [missing ranks: 2, 0]", (0, 2)),
        (
            "[1,0]<stderr>:Missing ranks:\n[1,0]<stderr>:3: [grad_1, b ...]\n[1,0]<stderr>:[2020-07-14 02:32:07: W]",
            (3,),
        ),
        ("Stalled ops: grad_1 [ready ranks: 0], grad_2 [ready ranks: 1]", ()),
        ("Missing ranks:\n1: [grad_1]\n3: [b, grad_1]", (1, 3)),
        (f"Stalled ops:b [missing ranks: 0]\n{HOROVOD}Stalled ops:grad_1 [missing ranks: 2]", (2,)),
    ],
)
def test_ranks_that_horovod_waits_for_are_named(rows, culprits):
    """In each form of its releases; those that miss another tensor each are not accused."""
    found = of(HOROVOD + rows)

    assert found.culprits == culprits
    assert found.kind == ("not_arrived" if culprits else "replaced")
    assert "grad_1" in found.summary


def test_a_stall_that_is_over_names_nobody():
    """Whoever warned has trained on."""
    rows = ("Stalled ops:grad_1 [missing ranks: 1]", "step 7 loss 0.5", "step 8 loss 0.4")

    assert of("".join(f"[1,0]<stderr>:{row}\n" for row in rows)) is None


def test_a_desync_report_names_the_laggard():
    """NCCL's own report of a time-out."""
    report = """\
  - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:
    - [1] finished collective #2411, but didn't join collective #2412 (count from 1)
    #2412 started ranks:
      [0, 2, 3] started ALLREDUCE
"""
    found = of(report)

    assert ("not_arrived", (1,), (0, 2, 3)) == (found.kind, found.culprits, found.waiting)
    assert CollectiveRef("all_reduce", 2412) == found.collective


def test_a_desync_report_names_those_who_did_not_finish_what_the_others_have():
    """All that is in the report are in one collective, or some are one behind."""
    head = "  - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
    behind = f"""{head}    - [1] joined but didn't finish collective #2411 (count from 1)
    #2411 started ranks:
      [1] started ALLREDUCE
    #2412 started ranks:
      [0, 2, 3] started ALLREDUCE
"""
    alike = f"""{head}    - [0, 1, 2, 3] joined but didn't finish collective #2411 (count from 1)
    #2411 started ranks:
      [0, 1, 2, 3] started ALLREDUCE
"""
    found = of(behind)

    assert ("not_arrived", (1,), (0, 2, 3)) == (found.kind, found.culprits, found.waiting)
    assert CollectiveRef("all_reduce", 2412) == found.collective
    assert of(alike) is None or not of(alike).culprits


def watchdog(rank, op, seq=41, group="0"):
    """What NCCL's watchdog prints on a time-out."""
    return (
        f"[rank{rank}]:[E ProcessGroupNCCL.cpp:607] [PG ID {group} PG GUID {group}(default_pg) Rank {rank}] Watchdog "
        f"caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn=8, NumelOut=8, "
        "Timeout(ms)=600000) ran for 600029 milliseconds before timing out."
    )


def test_watchdogs_of_all_ranks_are_put_to_the_vote():
    """Three time out in all_reduce, one in another collective of the same number."""
    text = "\n".join(watchdog(r, "BROADCAST" if r == 1 else "ALLREDUCE") for r in range(4))

    assert (1,) == of(text).culprits
    alike = of("\n".join(watchdog(r, "ALLREDUCE") for r in range(4)))
    assert ("not_understood", (), (0, 1, 2, 3)) == (alike.kind, alike.culprits, alike.waiting)


def test_watchdogs_of_different_groups_are_told_and_not_compared():
    """Ranks may wait in different groups without any fault of theirs."""
    text = "\n".join(watchdog(r, "BROADCAST" if r == 1 else "ALLREDUCE", group=str(r == 1)) for r in range(4))

    found = of(text)

    assert ("not_understood", (), (0, 1, 2, 3)) == (found.kind, found.culprits, found.waiting)


def side(rank, op="ALLREDUCE", shape="4", dtype="Float", seq=7):
    """One half of a message of DETAIL mode."""
    return SIDE.format(rank, seq, op, shape, dtype)


@given(st.integers(3, 12), st.data())
def test_whoever_differs_from_the_majority_is_named_whatever_the_order_of_messages(ranks, data):
    """Each rank's message names itself and the first that differs; lines come in any order, some are lost."""
    odd = data.draw(st.integers(0, ranks - 1))
    kind, change = data.draw(st.sampled_from([("wrong_size", {"shape": "5"}), ("wrong_dtype", {"dtype": "Half"})]))
    call = {r: side(r, **(change if r == odd else {})) for r in range(ranks)}
    first = {r: (0 if odd else 1) if r == odd else odd for r in range(ranks)}
    messages = [
        f"[rank{r}]: RuntimeError: Detected mismatch between collectives on ranks. {call[r]}, but {call[first[r]]}."
        for r in range(ranks)
    ]
    kept = data.draw(st.permutations(messages))[: data.draw(st.integers(2, ranks))]
    found = of("\n".join(kept))
    speakers = {r for r in range(ranks) if messages[r] in kept} - {odd}

    if len(speakers) >= 2:
        assert (kind, (odd,)) == (found.kind, found.culprits)
        assert speakers <= set(found.waiting)
    else:
        assert found is None or found.culprits in ((odd,), ())


@given(st.text(st.sampled_from("Rank 0123[]#,:=()dmonitoredBarrier\n"), max_size=300))
def test_any_text_is_read_without_failure(text):
    """Output of a stranger's program: no verdict or one, never an error."""
    for begin in ("Detected mismatch between collectives on ranks. ", "[Rank 0]: Ranks ", "Watchdog caught ", ""):
        of(begin + text + " monitoredBarrier didn't join collective")


def test_lines_are_those_of_the_whole_log():
    """An excerpt knows where its lines stood."""
    text = (PRINTED / "size.txt").read_text()
    found = of(text, first_lines=((1, 1001),))

    assert found.claims
    assert all(claim.record.line > 1000 for claim in found.claims)


def test_the_command_says_the_verdict_first(capsys, monkeypatch, tmp_path):
    """`dtdebug diagnose LOG` fills it in by itself."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    assert main(["diagnose", str(PRINTED / "size.txt")]) == FOUND
    first = " ".join(capsys.readouterr().out.split())
    main(["diagnose", str(PRINTED / "size.txt"), "--full"])
    shown = capsys.readouterr().out

    assert first.startswith("dtdebug: Rank 2 is in all_reduce #9 of [5] Float (job.py:21) where ranks 0-1,3 are in")
    assert "A communication operation fails during training (D.1.1)" in shown
    assert re.search(r"  seen: .*\[line \d+ of ", shown)
