"""Diffs of ordinary errors: the program with the diff runs, and what only points at a place is not called certain."""

import sys
from pathlib import Path

import pytest

from dtdebug.account.capture import capture
from dtdebug.experiments.trial.patch import apply_patch
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Excerpt, Snapshot
from dtdebug_taxonomy.presentation.answer import build_answer

TRACE = BaseException.__dict__["__traceback__"]
NO_RETURN = """def make(x):
    base = x + 1
    chain = [base]


rows = make(2)
rows.append(3)
"""
CROSSED = """def worker(batch, world):
    if batch % world:
        raise ValueError("does not divide")


batch, world = 8, 2
worker(world, batch)
"""
VARIABLE = """import os

local = int(os.environ["LOCAL_RANK_ID"])
"""
COMPUTED = """SETTINGS = {"train": 1, "eval": 2}


def settings_for(path):
    split = path.split("-")[0]
    return SETTINGS[split]


settings_for(%r)
"""


@pytest.fixture(autouse=True)
def _own_process(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["train.py"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LOCAL_RANK_ID", raising=False)


def run(path):
    """Run a program here; raises what it raises."""
    exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__", "__file__": str(path)})


def answered(folder, text, environment=None):
    """Return the answer to what a program raises."""
    path = folder / "train.py"
    path.write_text(text)
    try:
        run(path)
    except Exception as error:
        TRACE.__set__(error, TRACE.__get__(error).tb_next.tb_next)
        found = capture(error, seconds=5)
    else:
        raise AssertionError("it did not fail")
    output = f'Traceback (most recent call last):\n  File "{path}", line {found.place.line}, in <module>\n'
    excerpt = Excerpt(file=str(path), first=1, lines=tuple(text.splitlines()))
    snapshot = Snapshot(
        output=f"{output}{found.exception}\n", accounts=(found,), excerpts=(excerpt,), environment=environment or {}
    )
    return build_answer(diagnose(load(), snapshot), snapshot)


@pytest.mark.parametrize(("text", "line"), [(NO_RETURN, 3), (CROSSED, 7), (VARIABLE, 3)])
def test_the_program_runs_with_the_diff(tmp_path, monkeypatch, text, line):
    """A missing return, two arguments in each other's place, a variable of another name."""
    monkeypatch.setenv("LOCAL_RANK", "1")
    answer = answered(tmp_path, text, {"LOCAL_RANK": "1"})
    assert ("train.py", line) == (Path(answer.fix.file).name, answer.fix.line)
    assert not answer.fix.proven
    path = tmp_path / "train.py"
    path.write_text(apply_patch(text, answer.fix.diff))
    run(path)


@pytest.mark.parametrize(
    "text",
    [
        NO_RETURN.replace("    chain = [base]\n", "    if base > 9:\n        return [base]\n"),
        NO_RETURN.replace("    chain = [base]\n", "    chain, end = [base], 0\n"),
        CROSSED.replace("(batch, world):", "(size, count):").replace("batch % world", "size % count"),
        VARIABLE.replace("LOCAL_RANK_ID", "DATA_FOLDER"),
    ],
)
def test_no_diff_where_several_would_do(tmp_path, text):
    """A function that returns on another path, several names, names that say nothing, no near variable."""
    answer = answered(tmp_path, text, {"LOCAL_RANK": "1"})
    assert answer.fix is None or not answer.fix.diff


def test_the_line_that_computes_a_key_is_blamed_where_its_source_has_one_of_the_keys(tmp_path):
    """Only likely: nothing proves that this key was meant."""
    answer = answered(tmp_path, COMPUTED % "shards-train-2")
    assert 5 == answer.fix.line
    assert "'train'" in answer.fix.text
    assert "likely" == answer.sure


def test_both_places_are_named_where_neither_the_key_nor_the_mapping_is_known_to_be_wrong(tmp_path):
    """The answer is not certain of one of them."""
    answer = answered(tmp_path, COMPUTED % "shards-2")
    assert "train.py:5" in answer.headline
    assert "train.py:1" in answer.headline
    assert "likely" == answer.sure
