"""The rank outside of the step in which the others wait is named, by stacks of any tool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dtdebug.cli.saved_stacks import case_of_stacks

LIB = "/opt/venv/lib/python3.11/site-packages/torch"
Row = tuple[str, int, str]
BACKWARD: list[Row] = [
    (f"{LIB}/autograd/graph.py", 979, "_engine_run_backward"),
    (f"{LIB}/autograd/__init__.py", 395, "backward"),
    (f"{LIB}/_tensor.py", 623, "backward"),
    ("/exp/train.py", 18, "train"),
]
SYNC: list[Row] = [(f"{LIB}/cuda/__init__.py", 1040, "synchronize"), ("/exp/train.py", 21, "train")]
SHARD: list[Row] = [("/exp/data.py", 6, "next_shard"), ("/exp/train.py", 16, "train")]
EVAL: list[Row] = [("/exp/evaluate.py", 30, "score"), ("/exp/train.py", 40, "train")]


def faulthandler(rank: int, rows: Sequence[Row]) -> str:
    body = "".join(f'  File "{file}", line {line} in {name}\n' for file, line, name in rows)
    return f"Timeout (0:00:14)!\nThread 0x00007f05697f0b8{rank} (most recent call first):\n{body}"


def py_spy(rank: int, rows: Sequence[Row]) -> str:
    body = "".join(f"    {name} ({file}:{line})\n" for file, line, name in rows)
    pid = 4000 + rank
    head = f"Process {pid}: python train.py\nPython v3.11.7 (/usr/bin/python3)\n\n"
    return f'{head}Thread {pid} (active): "MainThread"\n{body}'


def verdict_on(folder: Path, write: Callable[[int, Sequence[Row]], str], ranks: Sequence[Sequence[Row]]):
    files = []
    for rank, rows in enumerate(ranks):
        files.append(folder / f"rank{rank}.txt")
        files[-1].write_text(write(rank, rows))
    found = case_of_stacks(files)
    assert not isinstance(found, str)
    return found.case.verdict


@pytest.mark.parametrize("write", [faulthandler, py_spy])
@pytest.mark.parametrize(
    ("ranks", "culprits", "place"),
    [
        ([BACKWARD, SHARD], (1,), "next_shard"),
        ([SHARD, BACKWARD], (0,), "next_shard"),
        ([SYNC, SYNC, EVAL], (2,), "score"),
        ([BACKWARD, BACKWARD, SHARD, EVAL], (2, 3), "next_shard"),
    ],
)
def test_who_is_outside_of_the_step_is_named(tmp_path, write, ranks, culprits, place) -> None:
    verdict = verdict_on(tmp_path, write, ranks)
    assert verdict.culprits == culprits
    assert place in verdict.summary
    assert verdict.confidence <= 0.6
    assert {site.rank for site in verdict.sites} == set(range(len(ranks)))


@pytest.mark.parametrize("write", [faulthandler, py_spy])
@pytest.mark.parametrize("ranks", [[BACKWARD, BACKWARD], [SHARD, EVAL], [BACKWARD, SHARD, EVAL], [BACKWARD], [SHARD]])
def test_without_a_step_of_most_ranks_none_is_named(tmp_path, write, ranks) -> None:
    assert verdict_on(tmp_path, write, ranks).culprits == ()
