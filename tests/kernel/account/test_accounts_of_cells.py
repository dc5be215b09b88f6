"""Accounts of a notebook's cells: imports and lines of other cells, and what a call could have said instead."""

import linecache

import pytest
from msgspec.structs import replace

from dtdebug.account.capture import capture
from dtdebug.check.stack_files import sourced_snapshot
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.ranks import RankState
from dtdebug_taxonomy.model.snapshot import Snapshot


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
