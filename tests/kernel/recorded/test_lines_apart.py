"""Two sides of a hang that wait in different operations: the line that only one of them reached is named."""

from pathlib import Path

import pytest

from dtdebug.cli.saved_stacks import case_of_stacks

LIB = "/opt/venv/lib/python3.11/site-packages/torch"
C10D = f"{LIB}/distributed/distributed_c10d.py"
MAIN = [("/exp/train.py", 90, "main"), ("/exp/train.py", 99, "<module>")]
GRADIENTS = [(f"{LIB}/autograd/graph.py", 979, "_engine_run_backward"), (f"{LIB}/_tensor.py", 623, "backward")]


def in_op(op, *rows):
    return [(C10D, 2900, op), *rows, *MAIN]


def backward(*rows):
    return [*GRADIENTS, *rows, *MAIN]


def case_on(folder: Path, ranks):
    files = []
    for rank, rows in enumerate(ranks):
        body = "".join(f"    {name} ({file}:{line})\n" for file, line, name in rows)
        files.append(folder / f"rank{rank}.txt")
        files[-1].write_text(f'Process {40 + rank}: python train.py\n\nThread {40 + rank} (idle): "MainThread"\n{body}')
    found = case_of_stacks(files)
    assert not isinstance(found, str)
    return found.case


SAVES = in_op("broadcast", ("/exp/ckpt.py", 12, "save"), ("/exp/loop.py", 70, "run"))
STEPS = backward(("/exp/loop.py", 61, "step"), ("/exp/loop.py", 66, "run"))


@pytest.mark.parametrize(
    ("ranks", "reached", "others"),
    [
        ([SAVES, STEPS, STEPS, STEPS], "rank 0 only", "ranks 1-3 wait"),
        ([STEPS, SAVES, STEPS, SAVES], "ranks 1,3 only", "ranks 0,2 wait"),
    ],
)
def test_the_line_that_some_ranks_alone_reached(tmp_path, ranks, reached, others) -> None:
    case = case_on(tmp_path, ranks)
    assert case.verdict.summary == (
        f"loop.py:70 in run is reached by {reached}, in broadcast; {others} in the gradient all-reduce at loop.py:66."
    )
    assert case.verdict.kind == "skipped"
    assert "condition before loop.py:70" in case.next
    assert {s.line for s in case.verdict.sites} == {66, 70}


def test_two_operations_side_by_side_name_both_lines(tmp_path) -> None:
    mean = in_op("all_reduce", ("/exp/evaluate.py", 30, "mean"), ("/exp/train.py", 50, "fit"))
    case = case_on(tmp_path, [mean, mean, mean, in_op("barrier", ("/exp/train.py", 53, "fit"))])
    assert "before train.py:50 and train.py:53" in case.next


def test_a_rank_at_work_is_late_and_its_line_proves_no_condition(tmp_path) -> None:
    loads = [("/exp/data.py", 8, "decode"), ("/exp/loop.py", 60, "run"), *MAIN]
    case = case_on(tmp_path, [loads, STEPS, STEPS])
    assert "reached by" not in case.verdict.summary
    assert "condition" not in case.next


def test_stacks_that_part_at_one_line_name_no_line(tmp_path) -> None:
    one, other = (
        in_op(op, (f"/exp/{file}.py", 5, file), ("/exp/loop.py", 70, "run"))
        for op, file in (("gather", "a"), ("broadcast", "b"))
    )
    case = case_on(tmp_path, [one, other, other])
    assert "condition" not in case.next


def test_a_backward_pass_is_named_by_what_it_is(tmp_path) -> None:
    other = backward(("/exp/pre.py", 3, "warm"))
    case = case_on(tmp_path, [SAVES, other, other])
    assert "_engine_run_backward" not in case.verdict.summary
