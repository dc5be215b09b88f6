"""The long proofs that take turns: none is forgotten, and a run can be repeated."""

import ast
from collections import Counter
from pathlib import Path

import pytest
import rotation

HERE = Path(__file__).parent


@pytest.mark.parametrize("group", rotation.GROUPS, ids=lambda group: f"{group.file}-{group.names[0]}")
def test_every_test_of_a_group_is_there_and_has_its_turn(group):
    """A renamed test would always run; one that no turn meets would never."""
    tree = ast.parse((HERE / group.file).read_text(encoding="utf-8"))
    there = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert set() == set(group.names) - there
    met = Counter(place for turn in range(rotation.TURNS) for place in range(50) if group.is_due(place, turn))
    assert dict.fromkeys(range(50), rotation.TURNS // group.of) == met


def test_the_table_of_parts_names_files_that_are_there_and_what_rotates():
    """Once each."""
    rows = [line.split("|")[2] for line in (HERE / "README.md").read_text(encoding="utf-8").splitlines() if "|" in line]
    named = [name.strip() for row in rows[2:] for name in row.split(",")]
    files = Counter(f"test_{name.strip('*')}.py" for name in named)
    assert {1} == set(files.values())
    assert [] == [file for file in files if not (HERE / file).is_file()]
    assert {group.file for group in rotation.GROUPS} == {f"test_{n.strip('*')}.py" for n in named if n.startswith("**")}


def test_the_turn_is_that_of_the_commit_and_can_be_asked_for(tmp_path):
    """The same commit makes the same proofs; without git it is the day's."""
    assert rotation.turn_of("all", HERE) is None
    assert rotation.turn_of("7", HERE) == 7
    assert rotation.turn_of("commit", HERE) == rotation.turn_of("commit", HERE) in range(rotation.TURNS)
    assert rotation.turn_of("commit", tmp_path) in range(rotation.TURNS)


@pytest.mark.parametrize("wanted", ["", "-1", "12", "half"])
def test_what_is_no_turn_is_refused(wanted):
    """Before anything runs."""
    with pytest.raises(pytest.UsageError, match="'all', 'commit', or a number from 0 to 11"):
        rotation.turn_of(wanted, HERE)
