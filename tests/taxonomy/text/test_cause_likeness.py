"""The likeness of words to what is known of causes makes answers depend on facts, not on how they are worded."""

from __future__ import annotations

import json

import pytest
from places import ROOT

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.text.cause_likeness import likeness_to_causes
from dtdebug_taxonomy.text.doubts import drop_doubts, is_vain, vain_spans

ROWS = [json.loads(row) for row in (ROOT / "tests" / "reworded_causes.jsonl").read_text(encoding="utf-8").splitlines()]
"""Failures that are told in three ways each, with the causes that are right for them."""
OPEN = [
    json.loads(row)["words"]
    for row in (ROOT / "tests" / "open_descriptions.jsonl").read_text(encoding="utf-8").splitlines()
]
"""Descriptions that leave the cause open."""


def first_cause(words: str) -> str:
    found = diagnose(load(), Snapshot(situation=words))
    return next((a.cause for a in (*found.advice, *found.guesses)), "")


def test_causes_from_words_alone_are_right_in_85_percent() -> None:
    """A wrong cause costs more than a missing one."""
    told = [(first_cause(words), row["causes"]) for row in ROWS for words in row["rewordings"]]
    right = sum(cause in causes for cause, causes in told)
    shown = sum(bool(cause) for cause, _ in told)
    assert len(told) == 90
    assert right >= 41
    assert right >= 0.85 * shown


@pytest.mark.parametrize("words", OPEN)
def test_words_that_leave_the_cause_open_get_none(words: str) -> None:
    """Likeness, alone or with one pattern that the rest of the text is unlike, names none."""
    assert not first_cause(words)


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (
            "The accuracy is lower with 8 GPUs than on a single GPU. {}. It is Horovod with the same learning rate.",
            ("The effective batch is the same as on one GPU", "learning-rate-not-matched-to-batch"),
        ),
        (
            "Loss is much higher after loading the checkpoint and training seems to begin anew. {}.",
            ("I compared all tensors: after the restart the weights are identical", "wrong-weights-restored"),
        ),
    ],
)
def test_a_cause_that_the_writer_rules_out_is_dropped(words: str, cause: tuple[str, str]) -> None:
    """Without that statement it is shown."""
    statement, name = cause
    assert first_cause(words.format("We use PyTorch")) == name
    assert first_cause(words.format(statement)) != name


def test_other_words_for_one_fact_are_alike() -> None:
    """No wording has a word of the pattern of another, and all are alike to the same cause."""
    for words in (
        "The master port is already used by somebody else's run.",
        "two torchruns on one box: the second one can't bind to the port",
    ):
        alike = likeness_to_causes(load(), words)
        assert max(alike, key=lambda cause: alike[cause]) == "port-already-taken"


def test_few_words_are_like_nothing() -> None:
    """Without a reading there are no ratios."""
    assert likeness_to_causes(load(), "It hangs.") == {}


@pytest.mark.parametrize(
    "text",
    [
        "Two cards hang. NCCL_P2P_DISABLE=1 did not help.",
        "Two cards hang. NCCL_P2P_DISABLE=1 made no difference.",
        "Two cards hang. Tried, none of it helped: num_workers=0, NCCL_P2P_DISABLE=1, a new driver.",
        "Two cards hang. I tried NCCL_P2P_DISABLE=1 to no avail.",
    ],
)
def test_a_remedy_in_vain_is_no_sign(text: str) -> None:
    """What did not help does not speak for the cause that it mends."""
    assert is_vain(vain_spans(text), text.index("NCCL_P2P"))
    assert first_cause(text) != "peer-to-peer-blocked"
    assert "NCCL_P2P" not in drop_doubts(text)


def test_a_suspicion_is_left_out() -> None:
    """The rest of the text stays, and a text without doubts stays as it is."""
    left = drop_doubts("It is slow. I suspect the switch. It has 25 GbE.")
    assert "switch" not in left
    assert left.startswith("It is slow.")
    assert left.endswith("It has 25 GbE.")
    assert drop_doubts("It is slow.") == "It is slow."
