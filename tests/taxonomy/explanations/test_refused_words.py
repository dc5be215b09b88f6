"""Words that a library does not know: the line that has one, and the word that it is to be."""

import pytest

from dtdebug_taxonomy.explanations.refused_words import of_word
from dtdebug_taxonomy.model.account import Account, Link, NamedValue, Place, Refusal


def refused(word, message, how="default", code=""):
    """Return the account of a library that refuses a word."""
    place = Place(file="train.py", line=3, code=code or f"def shard(mesh, axis={word!r}): pass")
    library = Place(file="/lib/site-packages/library.py", line=9)
    link = Link(value=NamedValue("axis", repr(word)), how=how, place=place)
    at = Place(file="train.py", line=8, code="mesh[axis]")
    return Account(exception=message, place=at, refusal=Refusal(place=library), links=(link,))


@pytest.mark.parametrize("how", ["literal", "default", "option"])
def test_the_line_that_has_the_word_is_named_however_it_was_written_down(how):
    found = of_word(refused("tp", "KeyError: no dimension ('tp',), there are ['data', 'tensor']", how), "")
    assert ("`axis` is 'tp', which is none of 'data', 'tensor'", 3) == (found.said, found.link.place.line)
    assert found.edit is None


def test_the_only_word_that_is_taken_is_written():
    found = of_word(refused("val_loss", "ValueError: metric val_loss is not there. There are: ['val_error']"), "")
    assert 'def shard(mesh, axis="val_error"): pass' == found.edit.code


def test_a_part_of_a_word_is_not_the_word():
    assert of_word(refused("tp", "ValueError: http: one of ['data', 'tensor']"), "") is None
