"""Shapes of a checkpoint that a model does not have: which size differs, and who decided it."""

import pytest

from dtdebug_taxonomy.explanations.checkpoint_shapes import of_shapes
from dtdebug_taxonomy.model.account import Account, Link, NamedValue, Place

LOAD = "RuntimeError: Error(s) in loading state_dict for Net:"


def mismatch(name, saved, made):
    return (
        f"\tsize mismatch for {name}: copying a param with shape torch.Size({saved}) from checkpoint, "
        f"the shape in current model is torch.Size({made}).\n"
    )


def account(*links, world="2"):
    place = Place(file="a.py", line=9, code="m.load_state_dict(s)")
    return Account(exception=LOAD, place=place, links=links, facts=(NamedValue("world size", world),))


def test_the_size_that_differs_is_named_with_the_line_that_decided_the_models():
    text = mismatch("head.weight", [10, 16], [5, 16]) + mismatch("head.bias", [10], [5])
    place = Place(file="a.py", line=3, code="classes = 5")
    found = of_shapes(account(Link(value=NamedValue("classes", "5"), how="literal", place=place)), text)
    assert "`head.weight` has the shape [10, 16] in the checkpoint and [5, 16] in the model" == found.said
    assert ("classes = 10", True) == (found.edit.code, found.likely)


@pytest.mark.parametrize(("world", "divided"), [("4", True), ("3", False)])
def test_parameters_that_are_all_divided_alike_are_parts_of_a_rank(world, divided):
    text = mismatch("up.weight", [64, 16], [32, 16]) + mismatch("down.weight", [16, 128], [16, 64])
    assert divided == ("a rank has one of 2 parts" in of_shapes(account(world=world), text).said)


@pytest.mark.parametrize(("saved", "made"), [([0], [4, 4]), ([16], [4, 4]), ([4, 4], [0])])
def test_empty_and_flat_parameters_are_left_to_what_is_known_of_shards(saved, made):
    assert of_shapes(account(), mismatch("w", saved, made)) is None


def test_rows_of_a_vocabulary_are_added_after_the_load():
    text = mismatch("model.embed_tokens.weight", [32000, 8], [32016, 8])
    assert "resize_token_embeddings(32016)" in of_shapes(account(), text).fix
