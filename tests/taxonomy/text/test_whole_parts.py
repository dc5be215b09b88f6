"""Shortened texts keep whole sentences, clauses and the figures of a message."""

import pytest

from dtdebug_taxonomy.text.whole_parts import first_parts, first_statement, message_parts


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        ("Set a limit. Look at the log for more of it.", 30, "Set a limit."),
        ("Raise the limit of the job (--mem=0 in the script of Slurm) now.", 45, "Raise the limit of the job now."),
        (
            "Pass a list with an entry for each rank, or leave it out, too.",
            50,
            "Pass a list with an entry for each rank.",
        ),
        ("Call `f(a, or b)` with a list of names; else it fails again", 45, "Call `f(a, or b)` with a list of names."),
        ("Nothingofthiscanbeleftoutanywhereinthetext", 20, "Nothingofthiscanbeleftoutanywhereinthetext"),
    ],
)
def test_a_fix_is_cut_at_a_whole_part(text, most, shown):
    """A sentence, else without its aside, else a clause; code and brackets stay whole."""
    assert first_parts(text, most) == shown


def test_the_figures_at_the_end_of_a_message_stay():
    """The middle goes, for the figures decide."""
    text = "invalid output tensor list at index 0 of the call in this process group (expected length 2, got 1)"
    shown = message_parts(text, 80)
    assert len(shown) <= 80
    assert shown.startswith("invalid output")
    assert shown.endswith("(expected length 2, got 1)")


def test_the_advice_of_a_message_goes_first():
    """What it says stands before what it proposes."""
    assert (
        message_parts("Sizes differ: 3 and 4. You can enable the debug mode to see more.", 40)
        == "Sizes differ: 3 and 4."
    )


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        (
            "Missing gradient for 'body.0.weight', 'body.0.bias', 'body.1.weight', 'head.bias': no step is made",
            85,
            "Missing gradient for 'body.0.weight', ..., 'head.bias': no step is made",
        ),
        (
            "Slots (enc.layer.zero.norm, enc.layer.one.norm, enc.layer.two.norm, enc.layer.six.norm) are unused",
            40,
            "Slots (...) are unused",
        ),
    ],
)
def test_a_list_loses_its_middle_so_that_what_is_said_of_it_stays(text, most, shown):
    """The predicate stands after the list."""
    assert message_parts(text, most) == shown


def test_a_short_list_stays_as_it_is():
    """It fits."""
    assert message_parts("The keys 'a.b', 'c.d', 'e.f' are empty", 60) == "The keys 'a.b', 'c.d', 'e.f' are empty"


def test_of_a_first_sentence_that_does_not_fit_both_ends_stay():
    """The rest of the message is not told in its place."""
    text = "The group of the ranks of one host was made before its store had an address. This may mean something else."
    shown = message_parts(text, 60)
    assert len(shown) <= 60
    assert shown.startswith("The group of the ranks")
    assert shown.endswith("an address.")


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            'Error(s) in loading state_dict for Net:\n\tMissing key(s): "a".\n\tUnexpected',
            'Error(s) in loading state_dict for Net: Missing key(s): "a".',
        ),
        (
            "Expected `tensor` of type Tensor\n             but got <class 'float'> instead.",
            "Expected `tensor` of type Tensor but got <class 'float'> instead.",
        ),
        ("Sizes differ.\nset DEBUG=1 to see more", "Sizes differ."),
        ("CUDA error: out of memory\nCUDA kernel errors might be reported later", "CUDA error: out of memory"),
        ("", ""),
    ],
)
def test_a_sentence_that_goes_on_below_is_whole(message, shown):
    """A colon announces the next line; a line in lower case continues the one above."""
    assert shown == first_statement(message)
