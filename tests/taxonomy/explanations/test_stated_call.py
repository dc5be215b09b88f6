"""A call of all ranks that the user says one rank makes is the first guess of a hang, and of nothing else."""

from __future__ import annotations

import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.explanations.stated_call import find_call
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("We let only the main process call accelerator.save_state(path).", "save_state"),
        (
            "The gather is behind `if accelerator.is_main_process`: `accelerator.gather_for_metrics`.",
            "gather_for_metrics",
        ),
        ("dist.all_gather_object runs on rank 0 only, the rest goes on to the next epoch.", "all_gather_object"),
        ("I moved engine.save_checkpoint() out of the rank == 0 branch.", ""),
        ("Only rank 0 prints the loss. Then all of them call dist.barrier().", ""),
        ("Only the main process stands at a barrier to entry.", ""),
        ("Only the main process writes the log.", ""),
    ],
)
def test_a_sentence_names_the_call_and_that_one_rank_makes_it(text: str, name: str) -> None:
    found = find_call(text)
    assert (found.name if found else "") == name


def test_it_is_said_of_a_hang_only() -> None:
    said = "Only the main process calls accelerator.save_state()."
    hangs = diagnose(load(), Snapshot(situation=f"Training hangs at the first checkpoint on 4 GPUs, no error. {said}"))
    first = (*hangs.advice, *hangs.guesses)[0]
    assert "save_state()" in first.title
    assert first.band == "possible"
    slow = diagnose(load(), Snapshot(situation=f"Training on 4 GPUs is as slow as on one. {said}"))
    assert all("save_state()" not in a.title for a in (*slow.advice, *slow.guesses))
