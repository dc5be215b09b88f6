"""A call is taken out of a condition on the rank only where that is plain, and the rest stays as it is written."""

import ast

import pytest

from dtdebug_taxonomy.checks.run.proving import apply
from dtdebug_taxonomy.checks.shared.lifting import lift_call
from dtdebug_taxonomy.source.python.code import Code


def _lifted(text):
    code = Code(text)
    fix = lift_call(code, code.calls("engine.save")[0], "Call it on every rank")
    if fix is None:
        return None
    fixed = apply(code.text, [fix])
    ast.parse(fixed)
    return fixed, fix.safe


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("if rank == 0:\n    engine.save(1)\n", "engine.save(1)\n"),
        ("if (rank == 0):\n    engine.save(1)", "engine.save(1)"),
        ("if not (rank != 0):\n    engine.save(1)\n", "engine.save(1)\n"),
        ("if rank == 0: engine.save(1)\n", "engine.save(1)\n"),
        ("if rank == 0:\n\n    # why\n    engine.save(1)  # c\n\nx()\n", "\n# why\nengine.save(1)  # c\n\nx()\n"),
        ("def f():\n\tif rank == 0:\n\t\tengine.save(1,\n\t\t\t2)\n", "def f():\n\tengine.save(1,\n\t\t2)\n"),
        ("if rank == 0:\r\n    engine.save(\r\n        1)\r\n", "engine.save(\r\n    1)\r\n"),
        ("if rank == 0:\n    p = f'{a}/b'\n    engine.save(p)\n", "p = f'{a}/b'\nengine.save(p)\n"),
    ],
)
def test_a_call_that_is_all_that_the_condition_is_for_stays_in_its_place(text, fixed):
    assert (fixed, None) == _lifted(text)


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("if rank == 0:\n    engine.save(1)\n    log()\n", "engine.save(1)\nif rank == 0:\n    log()\n"),
        ("if rank == 0:\n    log()\n    engine.save(1)\n", "if rank == 0:\n    log()\nengine.save(1)\n"),
        (
            "if rank == 0:\n    p = a\n    engine.save(p)\n    log(p)\n",
            "p = a\nengine.save(p)\nif rank == 0:\n    log(p)\n",
        ),
        ("if i % 9 == 0 and rank == 0:\n    engine.save(1)\n", "if i % 9 == 0:\n    engine.save(1)\n"),
        ("if rank == 0 and i:\n    engine.save(1)\n", "if i:\n    engine.save(1)\n"),
        ("if (a or b) and rank == 0:\n    engine.save(1)\n", "if a or b:\n    engine.save(1)\n"),
        ("if (a or b) and rank == 0 and c:\n    engine.save(1)\n", "if (a or b) and c:\n    engine.save(1)\n"),
        ("if rank == 0:\n    if a:\n        engine.save(1)\n", "if a:\n    engine.save(1)\n"),
        (
            "if rank == 0:\n    x()\n    engine.save(1)\n    y()\n",
            "if rank == 0:\n    x()\nengine.save(1)\nif rank == 0:\n    y()\n",
        ),
        (
            "if rank == 0 and i % 9 == 8:\n    x()\n    # of all\n    engine.save(1)\n    y()\n",
            (
                "if i % 9 == 8:\n    if rank == 0:\n        x()\n    # of all\n    engine.save(1)\n"
                "    if rank == 0:\n        y()\n"
            ),
        ),
        (
            "if rank == 0:\n    x()\n    if i % 9 == 8:\n        y()\n        engine.save(1)\n        z()\n",
            (
                "if rank == 0:\n    x()\nif i % 9 == 8:\n    if rank == 0:\n        y()\n    engine.save(1)\n"
                "    if rank == 0:\n        z()\n"
            ),
        ),
    ],
)
def test_a_call_that_moves_or_keeps_another_condition_is_for_the_author_to_confirm(text, fixed):
    assert (fixed, False) == _lifted(text)


def test_calls_under_one_condition_move_together():
    code = Code("if rank == 0:\n    engine.save(1)\n    x()\n    engine.save(2)\n")
    first, second = code.calls("engine.save")
    fix = lift_call(code, first, "Call it on every rank", [first, second])
    assert fix == lift_call(code, second, "Call it on every rank", [first, second])
    assert apply(code.text, [fix, fix]) == "engine.save(1)\nif rank == 0:\n    x()\nengine.save(2)\n"


def test_the_two_halves_of_a_context_stay_where_they_are():
    """Each rank calls the barrier once: the first on the way out, the others on the way in."""
    code = Code(
        "import torch.distributed as dist\n\nclass First:\n    def __enter__(self):\n        if self.rank != 0:\n"
        "            dist.barrier()\n\n    def __exit__(self, *_):\n        if self.rank == 0 and self.many:\n"
        "            dist.barrier()\n"
    )
    calls = code.calls("torch.distributed.barrier")
    assert [lift_call(code, c, "Call it on every rank", calls) for c in calls] == [None, None]


@pytest.mark.parametrize("call", ["dist.gather(x, out)", "dist.scatter(x, parts)"])
def test_a_call_whose_list_only_the_root_may_give_stays(call):
    code = Code(f"import torch.distributed as dist\n\nif dist.get_rank() == 0:\n    {call}\n    print(x)\n")
    (found,) = code.calls("torch.distributed.gather", "torch.distributed.scatter")
    assert lift_call(code, found, "Call it on every rank") is None


@pytest.mark.parametrize(
    "text",
    [
        "if rank == 0:\n    engine.save(1)\nelse:\n    x()\n",
        "if a:\n    x()\nelif rank == 0:\n    engine.save(1)\n",
        "if rank == 0:  # the reason\n    engine.save(1)\n",
        "if rank == 0:\n    engine.save('''a\nb''')\n",
        "if rank == 0:\n    engine.save(1); x()\n",
        "if rank == 0:\n    p = make()\n    engine.save(p)\n",
        "if rank == 0:\n    if rank < 2:\n        engine.save(1)\n",
        "here = rank == 0 and a\nif here:\n    engine.save(1)\n",
        "if rank != 0:\n    exit()\nengine.save(1)\n",
        "\ufeffif rank == 0:\n    engine.save(1)\n",
        "engine.save(1)\n",
        "loss = f()\nif rank == 0 and loss.item() < best:\n    engine.save(1)\n",
        "if rank == 0:\n    if time.time() > end:\n        engine.save(1)\n",
        "if rank == 0:\n    x = make()\nif rank == 0:\n    engine.save(x)\n",
        "if rank == 0:\n    rows.append(1)\n    engine.save(rows)\n",
        "if rank == 0:\n    for b in x:\n        engine.save(b)\n",
    ],
)
def test_what_is_not_plain_is_left_to_the_author(text):
    assert _lifted(text) is None
