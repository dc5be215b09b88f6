"""Samples of two sizes that a loader stacks, and the `collate_fn` that another loader of the file has."""

from msgspec.structs import replace

from dtdebug_taxonomy.explanations.unequal_samples import of_samples
from dtdebug_taxonomy.model.account import Account, Link, NamedValue, Place

PRINTED = "RuntimeError: stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1"
OTHER = "valid_loader = DataLoader(valid, collate_fn=pad)"


def link(name, line, code, how="called"):
    mark = (code.index("pad"), code.index("pad") + 3) if name == "collate_fn" else (0, 0)
    return Link(value=NamedValue(name), how=how, place=Place(file="/w/train.py", line=line, code=code, mark=mark))


def test_the_loader_gets_the_function_of_the_other_loader():
    links = (link("DataLoader", 4, "loader = DataLoader(train)"), link("collate_fn", 5, OTHER, "passed"))
    account = Account(exception="RuntimeError: Caught RuntimeError in DataLoader worker process 0.", links=links)
    found = of_samples(account, PRINTED)
    assert found.edit.code == "loader = DataLoader(train, collate_fn=pad)"
    assert "[2] and [3]" in found.said
    alone = of_samples(replace(account, links=links[:1]), PRINTED)
    assert alone.link == links[0]
    assert alone.edit is None
    given = (link("DataLoader", 5, OTHER),)
    assert of_samples(replace(account, links=given), PRINTED) is None
    assert of_samples(account, "RuntimeError: other") is None
