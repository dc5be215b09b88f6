"""Unforeseen faults planted at random lines of real programs: the truth is known, and answers are held against it."""

from __future__ import annotations

import ast
import dataclasses
import random
from importlib.util import find_spec

import pytest

if find_spec("torch") is None:  # importing it here would cost each worker a second
    pytest.skip("torch is not installed", allow_module_level=True)

import planted_jobs
from foreign import ERRNO, REAL, SAID
from judging import judge
from planted_jobs import Outcome
from planting import FAMILIES, FOLDER, PROGRAMS, Fault, draw, plant, shape
from statements import made_of

ENOUGH = 60
LAST_STEPS = {"lines": {}, "ops": ["all_reduce", "broadcast"]}
FAULT = Fault(
    seed=1, program="ddp", world=2, fault="said", family="dies", rank=1, visit=1, file="ddp/main.py", line=50,
    statement="", kinds=("dead",), name="project.errors.NaNLoss", words="loss is nan", lines=(("ddp/main.py", 50),),
)  # fmt: skip


def answer(kind, culprits, line, summary):
    """The form for programs, as far as it is judged."""
    where = line and {"file": "/tmp/work/ddp/main.py", "line": line, "function": "train"}
    sites = [{"rank": culprits[0], "file": "/tmp/work/ddp/main.py", "line": line}] if line else []
    verdict = {"kind": kind, "culprits": culprits, "where": where, "sites": sites, "summary": summary, "evidence": []}
    return Outcome(True, 1, False, "run", {"verdict": verdict, "diagnosis": {}})


def everything(program):
    """A trace in which every line was run by every rank."""
    lines = {f"{program}/{path.name}:{n}": 9 for path in (FOLDER / "programs" / program).iterdir() for n in range(200)}
    return {rank: {"lines": lines, "ops": []} for rank in range(8)}


def test_the_exceptions_are_many_and_of_many_libraries():
    """No list of names that dtdebug could hold covers them."""
    names = {name for name, *_ in (*SAID, *REAL)}
    assert len(SAID) + len(ERRNO) >= ENOUGH
    assert len({name.split(".")[0] for name in names}) >= ENOUGH // 2


def test_each_planted_program_can_be_run(tmp_path):
    """The statement stands where the truth says, and the program remains a program."""
    for seed in range(150):
        program, world, *_ = shape(seed, 8)
        assert world <= 8
        fault = draw(seed, everything(program), 8)
        script = plant(fault, tmp_path / str(seed))
        ast.parse(script.read_text())
        if fault.fault != "clean":
            text = (script.parents[1] / fault.file).read_text()
            ast.parse(text)
            assert "storelib.now()" in text.splitlines()[fault.line - 1]


def test_every_fault_is_drawn_by_some_seed_and_the_same_one_by_the_same():
    """A wrong answer can be had again."""
    drawn = [shape(seed) for seed in range(600)]
    assert drawn == [shape(seed) for seed in range(600)]
    assert {fault for _, _, _, fault, _ in drawn} == {fault for faults in FAMILIES.values() for fault in faults}
    assert {program for program, *_ in drawn} == set(PROGRAMS)
    assert made_of("said", random.Random(3)) == made_of("said", random.Random(3))


def test_a_right_answer_is_right_and_each_wrong_part_is_seen(tmp_path):
    """The comparison can fail in rank, line, cause and by a contradiction."""
    right = judge(FAULT, answer("dead", [1], 50, "Rank 1 raised NaNLoss: loss is nan"), tmp_path)
    assert (right.rank, right.kind, right.line, right.cause, right.contradicted) == (True, True, True, "right", [])
    wrong = judge(FAULT, answer("not_arrived", [0], 51, "Rank 0 never arrived at send #3"), tmp_path)
    assert (wrong.rank, wrong.kind, wrong.line, wrong.cause) == (False, False, False, "open")
    assert wrong.contradicted == ["not_arrived, but rank 1 failed by itself"]
    healthy = dataclasses.replace(FAULT, fault="compile", family="healthy", rank=None, kinds=("none",))
    assert judge(healthy, answer("not_arrived", [1], 50, "Rank 1 is busy"), tmp_path).stopped
    said = answer("dead", [1], 50, "Rank 1 raised NaNLoss in broadcast #3")
    named = judge(dataclasses.replace(FAULT, ops=("all_reduce",)), said, tmp_path)
    assert named.contradicted == ["broadcast is never called"]


@pytest.mark.ranks
def test_a_planted_fault_strikes_where_the_truth_says(tmp_path):
    """A real job with a kill at a random line gets the rank that was killed, and no statement that is untrue."""
    seed = next(
        n for n in range(10_000) if shape(n)[0] == "nanogpt" and shape(n)[3:] == ("kill", True) and shape(n)[1] == 2
    )
    fault = planted_jobs.prepare(seed, tmp_path, 2)
    outcome = planted_jobs.observe(fault, tmp_path / fault.title)
    found = judge(fault, outcome, tmp_path / fault.title)
    assert (found.void, found.rank, found.contradicted) == ("", True, []), found.said
