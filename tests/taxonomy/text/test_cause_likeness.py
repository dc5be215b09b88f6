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


def first_cause(words: str) -> str:
    found = diagnose(load(), Snapshot(situation=words))
    return next((a.cause for a in (*found.advice, *found.guesses)), "")


def test_words_alone_name_more_right_causes_than_wrong_ones() -> None:
    """More than half of all wordings get a right cause, and hardly any a wrong one."""
    told = [(first_cause(words), row["causes"]) for row in ROWS for words in row["rewordings"]]
    right = sum(cause in causes for cause, causes in told)
    wrong = sum(bool(cause) and cause not in causes for cause, causes in told)
    assert len(told) == 90
    assert right >= 50
    assert wrong <= 7


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
