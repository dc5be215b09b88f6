"""What a writer found out leads the answer, graded as stated; a stated time names the limit that it equals."""

from __future__ import annotations

import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.explanations.reckoners.time_limits import find_limit
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.answer import build_answer

HANGS = "Training with DDP on four GPUs hangs in the second epoch, without any message. "


def answer_to(situation: str, output: str = ""):
    snapshot = Snapshot(situation=situation, output=output)
    found = diagnose(load(), snapshot)
    return found, build_answer(found, snapshot)


def test_the_finding_leads_with_the_fix_that_was_found() -> None:
    found, answer = answer_to(
        f"{HANGS}Turned out that the HDF5 file was opened before the fork. Opening it in the worker fixed it."
    )
    assert answer.headline == "The writer's own finding: the HDF5 file was opened before the fork."
    assert answer.event == "Training hangs without an error."
    assert "opening it in the worker fixed it" in answer.fix.text
    assert found.advice[0].grade == "stated"
    assert answer.sure == "possible"
    assert answer.next is not None
    assert answer.next.text.startswith("Run it once with and once without")


def test_what_is_known_of_such_a_cause_is_added() -> None:
    found, answer = answer_to("Two RTX 4090 hang in the first all_reduce. If I set NCCL_P2P_DISABLE=1 it works.")
    assert found.advice[0].cause == "peer-to-peer-blocked"
    assert answer.headline.startswith("The writer's own finding: if I set NCCL_P2P_DISABLE=1")
    assert answer.why.startswith("Peer-to-peer between the GPUs")


def test_a_suspicion_does_not_lead() -> None:
    _, answer = answer_to(f"{HANGS}I suspect that the culprit was the HDF5 file.")
    assert "finding" not in answer.headline


def test_a_message_that_names_its_cause_stays_first() -> None:
    printed = (
        "[rank1]: RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one."
        " This error indicates that your module has parameters that were not used in producing loss.\n"
        "[rank1]: Parameter indices which did not receive grad for rank 1: 214 215\n"
    )
    found, answer = answer_to("Training on 4 GPUs stops. The culprit was the new auxiliary head.", printed)
    assert "prior iteration" in answer.headline
    assert any("the new auxiliary head" in a.title for a in found.advice)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("With gloo the other ranks die after exactly 30 minutes.", "of a process group with gloo"),
        ("DeepSpeed: after half an hour the watchdog kills the run.", "under DeepSpeed"),
        ("10 minutes into the validation NCCL aborts everything.", "of a process group with NCCL"),
        ("torchrun gives up after 600 s, as the last of four nodes joins late.", "join_timeout of torchrun"),
        ("The workers call init_process_group and quit after precisely 300 seconds.", "of the TCPStore"),
        ("An epoch takes 30 minutes and then it fails in the second one.", ""),
        ("It dies after 25 minutes.", ""),
        ("We set timeout=timedelta(minutes=30); it dies after 30 minutes.", ""),
        ("It dies after 300 seconds in the second epoch.", ""),
        ("The job is fine, 30 minutes for each epoch.", ""),
    ],
)
def test_a_stated_time_is_a_default_limit(text: str, says: str) -> None:
    found = find_limit(text)
    assert (found is not None) == bool(says)
    assert found is None or says in found.says


def test_the_limit_is_the_event_and_the_cause_stays() -> None:
    found, answer = answer_to(
        "Rank 0 tokenizes the corpus while the others wait in a barrier (gloo); they die after exactly 30 minutes."
    )
    assert answer.headline.startswith("30 minutes is the default time limit of a process group with gloo")
    assert found.advice[0].cause == "one-rank-prepares-too-long"
