"""Verdicts from what NCCL's watchdogs print on each rank, in the words of PyTorch's releases.

No GPU is here, so that the lines are shaped on those of real jobs:
https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtdebug.privacy.sanitize import clean
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.verdicts import from_log

PREFIX = "[rank{0}]:[E1123 03:12:44.113 ProcessGroupNCCL.cpp:632] "
GROUP = "[PG ID 0 PG GUID 0(default_pg) Rank {0}] "


def caught(rank, seq, op="ALLREDUCE", size=100):
    """The time-out of one rank."""
    return (
        f"{PREFIX.format(rank)}[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, "
        f"OpType={op}, NumelIn={size}, NumelOut={size}, Timeout(ms)=600000) ran for 600029 milliseconds "
        "before timing out."
    )


def status(rank, seq, enqueued, *, release="2.7"):
    """How far a rank that timed out is."""
    head = PREFIX.format(rank) + GROUP.format(rank)
    if release == "2.5":
        return (
            f"{head}Exception (either an error or timeout) detected by watchdog at work: {seq}, last enqueued NCCL "
            f"work: {enqueued}, last completed NCCL work: {seq - 1}."
        )
    return (
        f"{head} failure detected by watchdog at work sequence id: {seq} PG status: last enqueued work: {enqueued}, "
        f"last completed work: {seq - 1}"
    )


def asked(rank, enqueued, completed=None):
    """How far a rank is that another one's time-out made speak."""
    completed = enqueued if completed is None else completed
    return (
        f"{PREFIX.format(rank)}{GROUP.format(rank)}Received a dump signal due to a collective timeout from  rank 7 and "
        f"we will try our best to dump the debug info. Last enqueued NCCL work: {enqueued}, last completed NCCL work: "
        f"{completed}.This is most likely caused by incorrect usages of collectives, e.g., wrong sizes used across "
        "ranks"
    )


def stack(rank, line):
    """Where the call was made, from the flight recorder."""
    return (
        f"{PREFIX.format(rank)}Stack trace of the failed collective: \n"
        "#0 all_reduce from /opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py:3068\n"
        "#1 wrapper from /opt/venv/lib/python3.11/site-packages/torch/distributed/c10d_logger.py:83\n"
        f"#2 step from /workspace/train.py:{line}\n#3 <module> from /workspace/train.py:140\n"
    )


def of(*rows):
    """The verdict on lines."""
    return from_log.verdict_of_log(Snapshot(output=clean("\n".join(rows))))


def timed_out(ranks, seq=1580, release="2.7"):
    """Ranks that waited in one call."""
    return [row for r in ranks for row in (caught(r, seq), status(r, seq, seq + 2, release=release), stack(r, 88))]


@pytest.mark.parametrize("release", ["2.5", "2.7"])
def test_a_rank_that_never_made_the_call_is_named_with_the_line_of_the_others(release):
    """Its last call has a lower number than the one that the others wait in."""
    found = of(*timed_out((0, 1, 2, 3, 5, 6, 7), release=release), asked(4, 1579))

    assert ("not_arrived", (4,), (0, 1, 2, 3, 5, 6, 7)) == (found.kind, found.culprits, found.waiting)
    assert found.summary.startswith("Rank 4 never called all_reduce #1580 of 100 elements at train.py:88")
    assert found.claims[0].record.words.startswith("last enqueued work: 1579")


def test_one_rank_that_called_more_than_all_others_is_the_odd_one():
    """Seven ranks are at the call before; either reading is kept."""
    found = of(*timed_out((7,)), *(asked(r, 1579) for r in range(7)))

    assert ("extra", (7,)) == (found.kind, found.culprits)
    assert [("not_arrived", tuple(range(7)))] == [(a.kind, a.culprits) for a in found.alternatives]


def test_ranks_in_different_calls_are_told_and_none_is_blamed_without_a_majority():
    """One waits in a broadcast, the other is past it."""
    found = of(caught(0, 1522, "BROADCAST", 8), status(0, 1522, 1522), caught(3, 1523), status(3, 1523, 1525))

    assert ("replaced", (), (0, 3)) == (found.kind, found.culprits, found.waiting)
    assert "rank 0 waited in broadcast #1522 of 8 elements, rank 3 waited in all_reduce #1523" in found.summary


def test_a_rank_held_up_in_a_call_that_the_others_have_finished_called_nothing_else():
    """All called the same; of a broadcast it says nothing, for its root need not wait for anybody."""
    rows = [caught(1, 1579), *(row for r in (0, 2, 4) for row in (caught(r, 1580), status(r, 1580, 1582)))]
    found = of(*rows)

    assert ("not_arrived", (1,), (0, 2, 4)) == (found.kind, found.culprits, found.waiting)
    assert "which ranks 0,2,4 have finished" in found.summary


def test_a_rank_that_alone_waits_in_what_the_others_have_finished_is_held_up_itself():
    """The others never timed out: they say how far they are because it did."""
    found = of(caught(5, 881), status(5, 881, 881), *(asked(r, 882, 881) for r in (4, 6, 7)))

    assert ("not_arrived", (5,), (4, 6, 7)) == (found.kind, found.culprits, found.waiting)
    assert "Rank 5 timed out in all_reduce #881 of 100 elements, which ranks 4,6-7 have finished." == (found.summary)
    assert "not_understood" == of(caught(5, 881, "BROADCAST"), status(5, 881, 881), asked(7, 882, 881)).kind


def test_what_another_rank_says_of_itself_is_told():
    """It has made the same call, and not finished it either."""
    found = of(caught(5, 881), status(5, 881, 881), asked(7, 881, 880))

    assert ("not_understood", (), (5,)) == (found.kind, found.culprits, found.waiting)
    assert ", rank 7 called it too and did not finish it." in found.summary
    assert "no other rank" not in found.summary
    assert {5, 7} == {rank for claim in found.claims for rank in claim.ranks}


def test_ranks_in_one_call_are_not_understood():
    """All are there, or the rank that is not has printed nothing: the output does not say which."""
    found = of(*timed_out(range(8)))

    assert ("not_understood", (), tuple(range(8))) == (found.kind, found.culprits, found.waiting)


def test_a_rank_that_speaks_of_no_time_out_is_the_one_to_look_at():
    """It has printed before."""
    found = of("[rank7]: step 100", *timed_out(range(7)))

    assert ("not_arrived", (7,)) == (found.kind, found.culprits)
    assert found.confidence <= 0.5


@pytest.mark.parametrize("rest", ["", ", last enqueued"])
def test_a_rank_whose_own_time_out_is_broken_off_is_not_silent(rest):
    """The rest of its line stands elsewhere, or is left out."""
    words = f"{PREFIX.format(3)}{GROUP.format(3)}Timeout at NCCL work: 7{rest}"
    rows = [caught(rank, 7) for rank in (0, 1, 2, 4)]

    assert ("not_understood", ()) == (of(*rows, words).kind, of(*rows, words).culprits)


def test_an_error_of_a_rank_comes_before_all_time_outs():
    """The others waited for it."""
    raised = (
        '[rank5]: Traceback (most recent call last):\n[rank5]:   File "/w/t.py", line 3, in f\n[rank5]: KeyError: 1'
    )
    found = of(raised, *timed_out(range(5)))

    assert ("dead", (5,)) == (found.kind, found.culprits)


def test_numbers_of_several_groups_are_not_compared():
    """Without the group's name one rank's numbers are of several groups."""
    assert of(caught(0, 7), caught(0, 96), caught(1, 8), caught(1, 97)) is None


def inside(group, rank, place, seq, last):
    """The time-out of one rank in a group of some ranks, where it has another number."""
    head = f"{PREFIX.format(rank)}[PG ID 3 PG GUID {group} Rank {place}] "
    return (
        f"{caught(rank, seq)}\n{head}failure detected by watchdog at work sequence id: {seq} PG status: last enqueued "
        f"work: {last}, last completed work: {seq - 1}"
    )


def test_a_rank_that_waits_in_its_own_group_holds_up_no_other():
    """Ranks 2-3 have not come to the call of all, for they wait themselves; nobody is blamed."""
    rows = [row for r in (0, 1) for row in (caught(r, 40), status(r, 40, 40))]
    rows += [row for r in (2, 3) for row in (inside("9(tp)", r, r - 2, 7, 7), asked(r, 39))]
    found = of(*rows)

    assert ("not_understood", (), (0, 1, 2, 3)) == (found.kind, found.culprits, found.waiting)
    assert "ranks 0-1 waited in all_reduce #40 of 100 elements in group default_pg" in found.summary
    assert "ranks 2-3 waited in all_reduce #7 of 100 elements in group 9(tp)" in found.summary


def test_a_rank_that_waits_nowhere_is_named_though_others_wait_in_other_groups():
    """Rank 3 never made the call of all that ranks 0-1 wait in; rank 2 waits for it in their pair."""
    rows = [row for r in (0, 1) for row in (caught(r, 40), status(r, 40, 40))]
    found = of(*rows, inside("9(tp)", 2, 0, 7, 7), asked(2, 39), asked(3, 39))
    alone = of(*rows, inside("9(tp)", 2, 0, 7, 7), asked(2, 40), asked(3, 39))

    assert ((), "not_understood") == (found.culprits, found.kind)
    assert ((3,), "not_arrived") == (alone.culprits, alone.kind)


def test_a_name_that_two_ranks_have_one_place_in_is_of_several_groups():
    """Both are rank 0 of it, so that their numbers say nothing of each other."""
    rows = [inside("9(tp)", r, r % 2, 7 + r // 2, 9) for r in range(4)]
    nameless = [
        f"[E ProcessGroupNCCL.cpp:474] [Rank {r % 2}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, "
        f"OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=120000) ran for {120600 + r} milliseconds"
        for r in range(4)
    ]

    assert of(*rows) is None
    assert of(*nameless) is None
    assert (0, 1) == of(*nameless[:2]).waiting


def test_what_ends_a_watchdog_names_the_group_of_what_it_repeats():
    """In some logs that line is all there is; the place in the group is no rank of the job."""
    end = "{0}[PG ID 6 PG GUID 90(PIPELINE) Rank {1}] Process group watchdog thread terminated with exception: {2}"
    rows = [end.format(PREFIX.format(r), r // 8, caught(r, 1).split("] ", 1)[1]) for r in (2, 10)]
    found = of(*rows, caught(3, 5), status(3, 5, 5))

    assert (2, 3, 10) == found.waiting
    assert "ranks 2,10 waited in all_reduce #1 of 100 elements in group 90(PIPELINE)" in found.summary


@given(st.integers(2, 12), st.integers(0, 11), st.permutations(range(12)))
def test_the_order_of_the_lines_changes_nothing(ranks, odd, order):
    """Ranks print as they come."""
    odd %= ranks
    rows = [asked(r, 1579) if r == odd else "\n".join(timed_out((r,))) for r in range(ranks)]
    found = of(*(rows[i] for i in order if i < ranks))

    assert (odd,) == found.culprits
    assert set(range(ranks)) - {odd} == set(found.waiting)


@pytest.mark.parametrize("width", [120, 150, 190])
def test_lines_that_a_terminal_has_broken_are_read_as_one(width):
    """Within a word too, as in logs that were copied out of a window."""
    rows = [line for rank in range(4) for line in (caught(rank, 12 - (rank == 3)), status(rank, 12 - (rank == 3), 13))]
    broken = [row[i : i + width] for row in rows for i in range(0, len(row), width)]

    def read(lines):
        return from_log.verdict_of_log(Snapshot(output="\n".join(lines)))

    whole, found = read(rows), read(broken)
    assert (whole.kind, whole.culprits, whole.waiting, whole.summary) == (
        found.kind, found.culprits, found.waiting, found.summary,
    )  # fmt: skip
