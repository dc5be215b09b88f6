"""Ranks that gloo aborted: who parted is told where the places of all ranks say it, and never more than bytes say."""

from __future__ import annotations

from array import array
from pathlib import Path

import msgspec
import pytest

from dtdebug.recorded.flight_recorder import analyse
from dtdebug.recorded.flight_recorder.align import common
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.claims import LOOP_LASTS
from dtdebug_taxonomy.model.ranks import Frame, RankState
from dtdebug_taxonomy.model.snapshot import Snapshot

LOOP = """\
def main(loader):
    for epoch in range(3):
        for batch in loader:
            step(batch)
        reduce()
"""


def states(file: Path, lines: list[int | None]) -> list[RankState]:
    """Ended ranks at these lines; the last was aborted."""
    stacks = [() if line is None else (Frame(str(file), line, "main"),) for line in lines]
    last = len(lines) - 1
    return [
        RankState(
            rank=rank,
            world_size=len(lines),
            alive=False,
            exit_code=1,
            stack=stack,
            exception="gloo::EnforceNotMet: op.preamble.length <= op.nbytes. 8 vs 4" if rank == last else "",
        )
        for rank, stack in enumerate(stacks)
    ]


@pytest.mark.parametrize("behind", ["reduce()", "if epoch % 2: reduce()"])
def test_the_rank_that_is_still_in_a_loop_which_its_peers_have_left_has_more_batches(
    tmp_path: Path, behind: str
) -> None:
    """Unless a pass of the loop around both may go by without their call: then it may be a pass ahead of them."""
    file = tmp_path / "train.py"
    file.write_text(LOOP.replace("reduce()", behind))
    found = analyse(tmp_path, states=states(file, [4, 5, 5, 5])).verdict

    assert ("extra", (0,)) == (found.kind, found.culprits)
    assert (behind == "reduce()") == any(claim.words == LOOP_LASTS for claim in found.claims)
    advice = diagnose(load(), Snapshot(verdict=found)).advice
    assert (behind == "reduce()") == (advice[0].cause in {"loops-of-unequal-length", "uneven-batches"})


@pytest.mark.parametrize(("inside", "sure"), [((True, True), 0.8), ((False, True), 0.5), ((None, True), None)])
def test_lists_of_unlike_length_are_told_where_the_ranks_are_in_that_call(tmp_path, inside, sure):
    """8 bytes for each object; of a peer of which nothing is known, it is said so, and one elsewhere refutes it."""
    file = tmp_path / "train.py"
    file.write_text(LOOP)
    call = Frame("/env/site-packages/torch/distributed/distributed_c10d.py", 3900, "broadcast_object_list")
    own = Frame(str(file), 4, "main")
    stacks = [() if one is False else (own, call) if one else (own,) for one in inside]
    rows = [msgspec.structs.replace(s, stack=stacks[s.rank]) for s in states(file, [4, 4])]
    rows[1] = msgspec.structs.replace(rows[1], exception=rows[1].exception.replace("8 vs 4", "16 vs 8"))
    found = analyse(tmp_path, states=rows).verdict

    if sure is None:
        assert "broadcast_object_list" not in found.summary
        return
    assert ("wrong_size", (1,), sure) == (found.kind, found.culprits, found.confidence)
    assert "Rank 1 passed a list of 1 object to broadcast_object_list" in found.summary
    assert "16 bytes, the sizes of 2" in found.summary
    assert (sure < 0.6) == ("if the rank that sent is in the same call" in found.summary)


def test_of_an_abort_alone_neither_the_call_nor_the_type_of_elements_is_told(tmp_path: Path) -> None:
    """8 bytes for 4 are two numbers, or another type, or another call."""
    file = tmp_path / "train.py"
    file.write_text(LOOP)
    found = analyse(tmp_path, states=states(file, [None, None, None, 5])).verdict

    assert () == found.culprits
    assert found.summary.endswith("a tensor of another size or type; which of them is not known.")
    assert "ranks-pass-unlike-tensors" not in {
        w.evidence for s in diagnose(load(), Snapshot(verdict=found)).symptoms for w in s.why
    }


@pytest.mark.parametrize(
    ("past", "certain"),
    [
        ([0, 1, 1, 1, 2, 1, 1], False),  # after two of three steps once a step came, and once the report
        ([1, 0, 1, 1, 2, 1, 1], False),  # two steps before the report, but the first was of another kind
        ([0, 1, 1, 1, 2, 1, 1, 1, 2, 1, 1], True),  # a whole round before says that a step is due
    ],
)
def test_of_two_ranks_the_past_decides_only_where_it_speaks_for_one_of_them(past, certain):
    """Steps (1) and a report (2) after each three of them; one of the ranks has left out a step."""
    found = common({0: array("Q", [*past, 1]), 1: array("Q", [*past, 2])}, pull=lambda rank: 0).partings

    assert [certain] == [parting.certain for parting in found]
    assert not certain or [1] == [parting.rank for parting in found]
