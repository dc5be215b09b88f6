"""Ranks that gloo aborted: who parted is told where the places of all ranks say it, and never more than bytes say."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtdebug.flight import analyse
from dtdebug_taxonomy.claims import LOOP_LASTS
from dtdebug_taxonomy.diagnosis import diagnose
from dtdebug_taxonomy.knowledge import load
from dtdebug_taxonomy.ranks import Frame, RankState
from dtdebug_taxonomy.snapshot import Snapshot

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
