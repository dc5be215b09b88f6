"""A clause says that it works, that it fails, or neither: by words of failing and going on, and by denials."""

import pytest

from dtdebug_taxonomy.text.outcomes import outcome_of


@pytest.mark.parametrize(
    ("clause", "works"),
    [
        ("it does not get stuck", True),
        ("I have never seen it hang with gloo", True),
        ("the loss decreases normally", True),
        ("the timeout does not occur with one worker", True),
        ("the NaNs are gone", True),
        ("the loss does not decrease", False),
        ("nothing happens", False),
        ("it no longer works", False),
        ("the learning rate stays at zero", False),
        ("it raises a file-not-found error", False),
        ("the norm grows abnormally", False),
        ("we train on 64 GPUs", None),
        ("the learning rate of rank 3", None),
        ("at 25% progress", None),
        ("each rank loads its own shard", None),
    ],
)
def test_a_denial_turns_a_word_round(clause, works):
    assert works is outcome_of(clause, None)


def test_not_with_turns_the_clause_before():
    assert outcome_of("but not with two nodes", True) is False
    assert outcome_of("but not with two nodes", None) is None


def test_a_drop_is_no_success():
    """ "Performance drop when using DDP" is a complaint."""
    assert outcome_of("Performance drop", None) is not True
