"""The long proofs that take turns: none is forgotten, and a run can be repeated."""

import ast
from collections import Counter

import pytest
import rotation
from places import ROOT, TESTS

FILES = {path.name: path for path in TESTS.rglob("test_*.py")}


@pytest.mark.parametrize("group", rotation.GROUPS, ids=lambda group: f"{group.file}-{group.names[0]}")
def test_every_test_of_a_group_is_there_and_has_its_turn(group):
    """A renamed test would always run; one that no turn meets would never."""
    tree = ast.parse(FILES[group.file].read_text(encoding="utf-8"))
    there = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert set() == set(group.names) - there
    met = Counter(place for turn in range(rotation.TURNS) for place in range(50) if group.is_due(place, turn))
    assert dict.fromkeys(range(50), rotation.TURNS // group.of) == met


def test_folders_of_tests_mirror_the_packages():
    """What covers a package stands in a folder of its name; no file of tests lies elsewhere, no name twice."""
    products = {"kernel": ROOT / "kernel/dtdebug", "taxonomy": ROOT / "taxonomy/dtdebug_taxonomy"}
    for path in TESTS.rglob("test_*.py"):
        top, *rest = path.relative_to(TESTS).parts[:-1]
        if top in products:
            assert (products[top] / rest[0]).is_dir() or (products[top] / f"{rest[0]}.py").is_file(), path
        else:
            assert top in {"lsp", "extension", "repository"}, path
    assert len(FILES) == len([*TESTS.rglob("test_*.py")])


def test_the_turn_is_that_of_the_commit_and_can_be_asked_for(tmp_path):
    """The same commit makes the same proofs; without git it is the day's."""
    assert rotation.turn_of("all", TESTS) is None
    assert rotation.turn_of("7", TESTS) == 7
    assert rotation.turn_of("commit", TESTS) == rotation.turn_of("commit", TESTS) in range(rotation.TURNS)
    assert rotation.turn_of("commit", tmp_path) in range(rotation.TURNS)


@pytest.mark.parametrize("wanted", ["", "-1", "12", "half"])
def test_what_is_no_turn_is_refused(wanted):
    """Before anything runs."""
    with pytest.raises(pytest.UsageError, match="'all', 'commit', or a number from 0 to 11"):
        rotation.turn_of(wanted, TESTS)
