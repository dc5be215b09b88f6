"""Accounts of a notebook's cells: imports and lines of other cells, and what a call could have said instead."""

import linecache

import pytest
from msgspec.structs import replace

from dtdebug.account.capture import capture
from dtdebug.account.sources import Sources, live_lines
from dtdebug.check.stack_files import sourced_snapshot
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.ranks import RankState
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.answer import build_answer


def raised(*cells):
    """The account of the exception that the last cell raises."""
    names = {"__name__": "__main__", "In": [*cells]}
    for number, cell in enumerate(cells):
        file = f"/tmp/ipykernel_7/{number}.py"
        linecache.cache[file] = (len(cell), None, cell.splitlines(keepends=True), file)
        try:
            exec(compile(cell, file, "exec"), names)
        except Exception as error:
            return capture(error, seconds=5)
    raise AssertionError("no cell failed")


@pytest.fixture(autouse=True)
def forget():
    yield
    for file in [file for file in linecache.cache if "ipykernel_7/" in file]:
        del linecache.cache[file]


def test_a_cell_knows_what_another_one_imports():
    """The contract of a call is found by its whole name."""
    account = raised("from statistics import fmean as mean", "values = 5", "mean(values)")

    assert "statistics.fmean" == account.refusal.api
    assert [("values", "literal", "/tmp/ipykernel_7/1.py")] == [
        (link.value.name, link.how, link.place.file) for link in account.links
    ]


def test_the_part_that_has_an_attribute_stands_beside_the_object_that_lacks_it():
    made = "class Part:\n    def shuffle(self): pass\nclass Whole:\n    def __init__(self):\n        self.part = Part()"
    account = raised(made, "whole = Whole()\nwhole.shuffle()")

    assert "whole.part" in [link.value.name for link in account.beside]


@pytest.mark.parametrize(
    ("definition", "line", "edited"),
    [
        ("def fit(loader, max_epochs=1, min_epochs=0): pass", "fit(1, max_epoch=3)", "fit(1, max_epochs=3)"),
        ("from json import dumps", "dumps([], indent)", "dumps([], indent=indent)"),
    ],
)
def test_an_argument_of_a_cell_is_repaired_by_the_parameters_of_what_is_called(definition, line, edited):
    """The diff is of the cell's own line, which is known only by the cell's name."""
    account = raised("indent = 2", definition, line)
    place = replace(account.place, file="cell In[3]")
    account = replace(account, rank=0, place=place)
    snapshot = sourced_snapshot(
        Snapshot(
            accounts=(account,), cell=line, cells=("", definition), cell_numbers=(1, 2, 3),
            ranks=(RankState(rank=0, world_size=2, alive=False),),
        )
    )  # fmt: skip
    found = diagnose(load(), snapshot)

    assert f"-{line}\n+{edited}" in found.advice[0].diff


NET = """class Net:
    def __init__(self):
        self.fc = 1

    def forward(self):
        return self.lost
"""
NEWER = NET.replace("self.fc = 1", "self.head = 1")
ROWS = "class Rows:\n    def __getitem__(self, i):\n        return i\n"
LOADER = "class Loader:\n    def __init__(self, dataset):\n        self.dataset = dataset\n"


@pytest.mark.parametrize(
    ("cells", "value", "made", "defined"),
    [
        ((NET, "model = Net()", NEWER, "model.head"), "model", 1, 2),
        ((NET, "model = Net()", NEWER, "model.forward()"), "model", 1, 2),
        (
            (ROWS + LOADER, "rows = Rows()", ROWS.replace("return i", "return {0: i}"),
             "def run():\n    loader = Loader(rows)\n    for x in [(1, 2)]:\n        loader + x\nrun()"),
            "rows", 1, 2,
        ),
        ((NET, "models = [Net()]", NEWER, "for model in models:\n    model.head"), "model", None, 2),
    ],
    ids=["at the line", "its method", "data set of a loader", "made in a list"],
)  # fmt: skip
def test_an_object_of_a_class_that_was_defined_again_is_named(cells, value, made, defined):
    """With the cell that made it, and the one that has changed its class since."""
    (found,) = raised(*cells).outdated

    assert (value, f"/tmp/ipykernel_7/{defined}.py") == (found.value.name, found.defined.file)
    assert made == (found.made and int(found.made.file[-4]))


@pytest.mark.parametrize(
    "cells",
    [
        (NET, "model = Net()", f"# the same\n\n{NET}", "model.head"),
        (NET, NEWER, "model = Net()", "model.fc"),
        (NET, "model = Net()", NEWER, "model\n{}['absent']"),
        ("class Net: pass", "model = Net()", "Net = 5", "model.head"),
    ],
    ids=["run again", "made after it", "not at the line", "no class any more"],
)
def test_an_object_of_the_class_as_it_is_says_nothing(cells):
    assert () == raised(*cells).outdated


@pytest.mark.parametrize(("line", "sure"), [("model.head", "certain"), ("model.other", "likely")])
def test_an_older_object_is_the_cause_for_certain_if_the_newer_class_has_what_it_lacks(line, sure):
    """Its cell is to be run again."""
    account = replace(raised(NET, "model = Net()", NEWER, line), rank=0)
    snapshot = Snapshot(accounts=(account,), ranks=(RankState(rank=0, world_size=2, alive=False),))
    found = build_answer(diagnose(load(), snapshot), snapshot)

    assert found.headline.startswith("`model` (made by ")
    assert "is of an older `Net` than that of" in found.headline
    assert found.fix.text.startswith("Run ")
    assert sure == found.sure


def test_a_library_is_not_the_program_of_a_cell_without_a_folder():
    """`linecache` seeks a relative path in all of `sys.path`."""
    assert Sources(live_lines).of_module("msgspec", "<ipython-input-1-0>") is None
