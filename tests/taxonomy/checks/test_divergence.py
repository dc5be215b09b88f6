"""Values that ranks do not share are followed to the decision before a collective; fixes add no divergence."""

import pytest

from dtdebug_taxonomy.checks.divergence.decisions import divergences
from dtdebug_taxonomy.checks.run.effects_of_fix import breaks
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.project import Project

HEAD = "import os, random, signal, socket, time\nimport torch\nimport torch.distributed as dist\n"


def found(text, **others):
    code = Code(HEAD + text, path="main.py")
    code.project = Project(lambda path: others.get(path.removesuffix(".py")))
    return [(d.kind, d.how, d.call) for d in divergences(code)]


def test_a_lambda_a_partial_and_a_function_in_an_attribute_are_followed():
    guarded = "def f(x):\n    {make}\n    if dist.get_rank() == 0:\n        g()\n"
    keeper = (
        "def wait():\n    dist.barrier()\nclass T:\n    def __init__(self, end):\n        self.end = end\n"
        "    def finish(self):\n        if dist.get_rank() == 0:\n            self.end()\nT(wait).finish()\n"
    )

    assert found(guarded.format(make="g = lambda: dist.barrier()")) == [("rank", "call", "barrier")]
    assert found(guarded.format(make="from functools import partial; g = partial(dist.all_reduce, x)")) == [
        ("rank", "call", "all_reduce")
    ]
    assert found(guarded.format(make="g = lambda: print(x)")) == []
    assert found(keeper) == [("rank", "call", "barrier")]


def test_a_value_from_another_module_is_followed_until_the_ranks_exchange_it():
    late = "import time\nSTART = time.time()\ndef late():\n    return time.time() - START > 60\n"
    loop = "from clock import late\ndef run(x):\n    while True:\n        dist.all_reduce(x)\n"
    loop += "{decide}        if {test}:\n            break\n"
    shared = "        t = torch.tensor([float(late())])\n        dist.broadcast(t, src=0)\n"

    assert found(loop.format(decide="", test="late()"), clock=late) == [("clock", "leave", "all_reduce")]
    assert found(loop.format(decide=shared, test="t.item()"), clock=late) == []


@pytest.mark.parametrize(
    "text",
    [
        "x = " + " + ".join(["1"] * 3000) + "\ndist.barrier()\n",
        "def f():\n    f()\n    dist.barrier()\nf()\n",
        "\n".join(f"def f{n}():\n    f{n + 1}()\n" for n in range(300)) + "\ndef f300():\n    dist.barrier()\n",
    ],
)
def test_long_and_circular_programs_end(text):
    assert found(text) == []


def test_a_change_that_reads_a_name_too_early_or_parts_the_ranks_breaks():
    early = "def main(args):\n{guard}    setup(args)\n    args.rank = dist.get_rank()\n"
    before = Code(HEAD + early.format(guard=""), path="main.py")
    after = Code(HEAD + early.format(guard="    if args.rank == 0:\n        print(1)\n"), path="main.py")
    both = Code("a = acc.gather(p) == acc.gather(q)\n", path="main.py")
    half = Code("a = acc.gather_for_metrics(p) == acc.gather(q)\n", path="main.py")
    wait = Code(HEAD + "def f(x):\n    dist.all_reduce(x)\n", path="main.py")
    alone = Code(HEAD + "def f(x):\n    if random.random() < 1:\n        dist.all_reduce(x)\nf(1)\n", path="main.py")

    assert breaks(before, after)
    assert breaks(both, half)
    assert breaks(wait, alone)
    assert not breaks(after, before)
    assert not breaks(alone, wait)
    assert not breaks(before, before)
